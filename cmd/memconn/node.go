package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/configs"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/sql"
	"github.com/memconn/memconn/sql/duck"
)

// node is one server: its layers, bottom up.
type node struct {
	conn   *connector.Connector
	engine *sql.Engine
	api    *api.Server
}

// startNode opens the data directory and serves it. On an error nothing is
// left open.
func startNode(ctx context.Context, c *configs.Config, logTo io.Writer) (n *node, err error) {
	log := newLog(c.Log, logTo)
	security, err := tlsConfig(c.TLS)
	if err != nil {
		return nil, err
	}
	n = &node{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop(context.WithoutCancel(ctx)))
			n = nil
		}
	}()
	options, err := connectorOptions(c, log)
	if err != nil {
		return n, err
	}
	if n.conn, err = connector.Open(ctx, options); err != nil {
		return n, err
	}
	n.engine, err = sql.New(n.conn, sql.Options{
		Threads: c.SQL.Threads, MemoryLimitBytes: c.Memory.EngineShareBytes, TempDir: c.SQL.TempDir,
		StatementTimeout: c.SQL.StatementTimeout, MaxStatementBytes: int(c.Limits.StatementBytes),
		MaxConcurrent: c.Limits.Statements, Log: log,
	})
	if err != nil {
		return n, err
	}
	n.api, err = api.New(n.engine, n.conn, apiOptions(c, security, log))
	if err != nil {
		return n, err
	}
	if err := n.api.Start(ctx); err != nil {
		n.api = nil
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; take another with --http-listen and --flight-listen", err)
		}
		return n, err
	}
	return n, nil
}

// stop ends the layers top down. It may be called on a node that is only
// partly open.
func (n *node) stop(ctx context.Context) error {
	var faults []error
	if n.api != nil {
		faults = append(faults, n.api.Shutdown(ctx))
	}
	if n.engine != nil {
		faults = append(faults, n.engine.Close(ctx))
	}
	if n.conn != nil {
		faults = append(faults, n.conn.Close(ctx))
	}
	return errors.Join(faults...)
}

func connectorOptions(c *configs.Config, log *slog.Logger) (connector.Options, error) {
	codec, err := spill.ParseCodec(c.Spill.Codec)
	if err != nil {
		return connector.Options{}, err
	}
	durability, err := spill.ParseDurability(c.Spill.Durability)
	if err != nil {
		return connector.Options{}, err
	}
	return connector.Options{
		DataDir: c.DataDir, MemoryBudgetBytes: c.Memory.BudgetBytes, EngineBytes: c.Memory.EngineShareBytes,
		PageRows: c.Parts.PageRows, PartTargetBytes: c.Parts.TargetBytes,
		Workers: c.Processing.Workers, ProcessingDelay: c.Processing.Delay,
		Codec: codec, Durability: durability, ManualCubeRefresh: c.Cubes.Refresh == "manual",
		StagedWriteTTL: c.Limits.StagedWriteTTL, MaxStagedWrites: c.Limits.StagedWrites, Log: log,
	}, nil
}

func apiOptions(c *configs.Config, security *tls.Config, log *slog.Logger) api.Options {
	return api.Options{
		HTTPListen: c.HTTP.Listen, FlightListen: c.Flight.Listen, FlightAdvertise: c.Flight.Advertise,
		AuthMode: c.Auth.Mode, TLS: security, Grace: c.Shutdown.Grace,
		MaxRunning: c.Limits.Streams, MaxSessions: c.Limits.Sessions, MaxPrepared: c.Limits.PreparedStatements,
		MaxMessageBytes: int(c.Limits.MessageBytes), MaxRequestBytes: c.Limits.StatementBytes, MaxUploadBytes: c.Limits.RequestBytes,
		MaxResultBytes: c.SQL.MaxResultBytes, TempDir: filepath.Join(c.DataDir, "tmp"),
		Version: version, Commit: revision(), DuckDB: duck.Version(), Log: log,
	}
}

// tlsConfig reads the PEM files; nil when none are named.
func tlsConfig(t configs.TLS) (*tls.Config, error) {
	if t.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls.cert %s and tls.key %s: %w", t.Cert, t.Key, err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read tls.client_ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls.client_ca %s holds no certificate", t.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

func newLog(c configs.Log, to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // configs allows only words that slog reads
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

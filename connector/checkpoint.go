package connector

import (
	"context"
	"errors"

	"github.com/cockroachdb/errors/oserror"

	"github.com/memconn/memconn/spill"
)

// CheckpointInfo says what a checkpoint holds.
type CheckpointInfo struct {
	Version uint64 `json:"version"` // number of the version that was copied
	Parts   int    `json:"parts"`   // part files in the copy
}

// Checkpoint copies the data directory into dir while everything goes on: all tables as
// of one version, by hard links where the device has them. dir is an absolute path
// outside of the data directory, and not there or empty; it appears when the copy is
// whole and on stable storage, and is then a data directory like any other. Writes wait
// while the metadata is copied, not while the parts are. Files of quarantined parts are
// copied as they are. Errors: INVALID_ARGUMENT for the path, also when something is
// there, DISK_FULL, DISK_ERROR; then nothing is left.
func (c *Connector) Checkpoint(ctx context.Context, dir string) (info CheckpointInfo, err error) {
	end, err := c.begin()
	if err != nil {
		return info, err
	}
	defer end()
	if err := c.publisher.failure(); err != nil {
		return info, err
	}
	k, err := c.store.BeginCheckpoint(dir)
	switch {
	case errors.Is(err, spill.ErrNotEmpty):
		return info, Errorf(CodeInvalidArgument, "%w: name a directory that is not there yet", err)
	case err != nil && CodeOf(err) == CodeInternal:
		return info, Errorf(CodeInvalidArgument, "%w", err)
	case err != nil:
		return info, asError(err)
	}
	if info, err = c.fillCheckpoint(ctx, k); err != nil {
		return CheckpointInfo{}, wrap(errors.Join(err, k.Abort()), "checkpoint in %q", dir)
	}
	c.log.Info("checkpoint made", "directory", dir, "version", info.Version, "parts", info.Parts)
	return info, nil
}

// fillCheckpoint copies what the current version consists of. The snapshot keeps its parts' files there.
func (c *Connector) fillCheckpoint(ctx context.Context, k *spill.Checkpoint) (CheckpointInfo, error) {
	c.publisher.turn.Lock()
	s := c.Snapshot()
	err := k.Meta()
	c.publisher.turn.Unlock()
	defer s.Close()
	info := CheckpointInfo{Version: s.Version()}
	if err != nil {
		return info, err
	}
	for _, t := range s.held.Version().AllTables() {
		for _, p := range t.Parts {
			if !p.Durable() {
				continue
			}
			if err := errors.Join(ctx.Err(), k.Part(p.ID())); err != nil {
				return info, err
			}
			info.Parts++
		}
		for _, b := range t.Broken {
			if err := k.Part(b.ID); err != nil && !oserror.IsNotExist(err) {
				return info, err
			}
		}
	}
	return info, k.Finish()
}

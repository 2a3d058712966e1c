package configs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/viper"
	"github.com/stretchr/testify/require"
)

// TestSampleHoldsEveryKeyWithItsDefault keeps memconn.yaml true (INV-C1).
func TestSampleHoldsEveryKeyWithItsDefault(t *testing.T) {
	v := viper.New()
	v.SetConfigFile("memconn.yaml")
	require.NoError(t, v.ReadInConfig())
	var want []string
	for _, k := range keys {
		want = append(want, k.name)
		require.Equal(t, k.def, v.GetString(k.name), "default of %s", k.name)
	}
	slices.Sort(want)
	got := v.AllKeys()
	slices.Sort(got)
	require.Equal(t, want, got)
	c, err := Load("memconn.yaml", nil)
	require.NoError(t, err)
	defaults, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, defaults, c)
}

func TestLayers(t *testing.T) {
	file := write(t, "memory:\n  budget: 1GiB\n  engine_share: 128MiB\nparts:\n  page_rows: 128\nspill:\n  codec: zstd\n")
	t.Setenv("MEMCONN_PARTS_PAGE_ROWS", "256")
	t.Setenv("MEMCONN_SPILL_CODEC", "none")
	t.Setenv("MEMCONN_URL", "grpc://127.0.0.1:1")
	c, err := Load(file, map[string]string{"spill.codec": "lz4", "processing.delay": "1s", "http.listen": ""})
	require.NoError(t, err)
	require.Equal(t, int64(1<<30), c.Memory.BudgetBytes)
	require.Equal(t, int64(128<<20), c.Memory.EngineShareBytes)
	require.Equal(t, 256, c.Parts.PageRows)
	require.Equal(t, "lz4", c.Spill.Codec)
	require.Equal(t, time.Second, c.Processing.Delay)
	require.Equal(t, "127.0.0.1:8080", c.HTTP.Listen)
	require.Equal(t, filepath.Join("memconn-data", "tmp", "engine"), c.SQL.TempDir)
}

func TestFaultsNameTheKeyAndComeTogether(t *testing.T) {
	for name, test := range map[string]struct {
		yaml  string
		flags map[string]string
		want  []string
	}{
		"unknown key":      {yaml: "memory:\n  bugdet: 1GiB\n", want: []string{`unknown configuration key "memory.bugdet"`, `did you mean "memory.budget"?`}},
		"unknown flag key": {flags: map[string]string{"data_dri": "x"}, want: []string{`did you mean "data_dir"?`}},
		"two faults":       {yaml: "log:\n  level: loud\nspill:\n  codec: gzip\n", want: []string{"log.level", `"loud"`, "spill.codec", `"gzip" is not one of lz4, zstd, none`}},
		"bad size":         {yaml: "memory:\n  budget: lots\n", want: []string{"memory.budget", `"lots"`, "512MiB"}},
		"too small":        {yaml: "memory:\n  budget: 1kB\n", want: []string{"memory.budget", "1000 bytes"}},
		"share over 100":   {yaml: "memory:\n  budget: 101%\n", want: []string{"memory.budget", "at most 100"}},
		"engine takes all": {yaml: "memory:\n  engine_share: 100%\n", want: []string{"memory.engine_share", "leave nothing"}},
		"page rows":        {yaml: "parts:\n  page_rows: 100\n", want: []string{"parts.page_rows", "power of two"}},
		"address":          {yaml: "http:\n  listen: nowhere\n", want: []string{"http.listen", "host:port"}},
		"open to all":      {yaml: "http:\n  listen: 0.0.0.0:80\n", want: []string{"http.listen", "auth.mode: insecure"}},
		"tls half":         {yaml: "tls:\n  cert: a.pem\n", want: []string{"tls.cert and tls.key"}},
		"duration":         {yaml: "shutdown:\n  grace: soon\n", want: []string{"shutdown.grace", "30s"}},
		"not yaml":         {yaml: "a: [", want: []string{"read configuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, test.yaml), test.flags)
			require.Error(t, err)
			for _, w := range test.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent.yaml"), nil)
	require.ErrorContains(t, err, "absent.yaml")
	t.Setenv("MEMCONN_MEMORY_BUDGIT", "1GiB")
	_, err = Load("", nil)
	require.ErrorContains(t, err, "MEMCONN_MEMORY_BUDGIT")
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "1kB": 1000, "1 KiB": 1024, "1.5MiB": 3 << 19, "2gb": 2e9, "3TiB": 3 << 40, "5b": 5} {
		got, err := ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1", "1XB", "NaN", "1e40GB", "B"} {
		_, err := ParseBytes(text)
		require.Error(t, err, text)
	}
}

func write(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "memconn.yaml")
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	return file
}

package configs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"
)

const envPrefix = "MEMCONN_"

// clientVariables are read by the command-line client, not by the server.
var clientVariables = []string{"MEMCONN_URL", "MEMCONN_TOKEN"}

// Load layers defaults, the YAML file (none when file is empty), the
// environment and flags (by key; empty values are ignored) and returns the
// validated result, or one error that lists every fault.
func Load(file string, flags map[string]string) (*Config, error) {
	v := viper.New()
	for _, k := range keys {
		v.SetDefault(k.name, k.def)
	}
	var faults []error
	if file != "" {
		v.SetConfigFile(file)
		v.SetConfigType("yaml")
		if err := v.ReadInConfig(); err != nil {
			return nil, fmt.Errorf("read configuration %s: %w", file, err)
		}
		for _, name := range v.AllKeys() {
			if !known(name) {
				faults = append(faults, fmt.Errorf("unknown configuration key %q in %s%s", name, file, suggest(name)))
			}
		}
	}
	faults = append(faults, applyEnvironment(v)...)
	for name, value := range flags {
		if !known(name) {
			faults = append(faults, fmt.Errorf("unknown configuration key %q%s", name, suggest(name)))
		} else if value != "" {
			v.Set(name, value)
		}
	}
	c := &Config{}
	faults = append(faults, c.fill(v)...)
	if len(faults) == 0 {
		faults = c.validate()
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return c, nil
}

// applyEnvironment sets every MEMCONN_ variable on v and reports unknown ones.
func applyEnvironment(v *viper.Viper) []error {
	var faults []error
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(clientVariables, name) {
			continue
		}
		i := slices.IndexFunc(keys, func(k key) bool { return variable(k.name) == name })
		if i < 0 {
			faults = append(faults, fmt.Errorf("unknown configuration variable %s: variables are %s<KEY> with dots as underscores, for example %s", name, envPrefix, variable("memory.budget")))
			continue
		}
		v.Set(keys[i].name, value)
	}
	return faults
}

// variable is the environment variable of a key.
func variable(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

func known(name string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.name == name })
}

// suggest names the nearest known key, when one is near.
func suggest(name string) string {
	best, distance := "", 1+len(name)/2
	for _, k := range keys {
		if d := editDistance(name, k.name); d < distance {
			best, distance = k.name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is Levenshtein's distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}

// fill reads every key into c.
func (c *Config) fill(v *viper.Viper) []error {
	var faults []error
	for _, k := range keys {
		if err := k.read(c, strings.TrimSpace(v.GetString(k.name))); err != nil {
			faults = append(faults, fmt.Errorf("configuration key %s: %w", k.name, err))
		}
	}
	c.resolve()
	return faults
}

// read parses text into the key's target in c.
func (k key) read(c *Config, text string) error {
	switch k.kind {
	case kindText:
		*k.text(c) = text
	case kindAddress:
		if _, _, err := net.SplitHostPort(text); err != nil {
			return fmt.Errorf("%q is not an address: write host:port, for example %s", text, k.def)
		}
		*k.text(c) = text
	case kindChoice:
		if !slices.Contains(k.choices, text) {
			return fmt.Errorf("%q is not one of %s", text, strings.Join(k.choices, ", "))
		}
		*k.text(c) = text
	case kindInt:
		return k.readInt(c, text)
	case kindBytes, kindShare:
		return k.readBytes(c, text)
	case kindPeriod:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || int64(d) < k.min {
			return fmt.Errorf("%q is not a duration: write 500ms, 30s or 1h", text)
		}
		*k.period(c) = d
	}
	return nil
}

func (k key) readInt(c *Config, text string) error {
	if text == "" && k.def == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || int64(n) < k.min {
		return fmt.Errorf("%q is not a whole number of at least %d", text, k.min)
	}
	*k.num(c) = n
	return nil
}

func (k key) readBytes(c *Config, text string) error {
	whole := machineMemory()
	if k.name == "memory.engine_share" {
		whole = c.Memory.BudgetBytes // keys are read in order: the budget is known
	}
	parse := func() (int64, error) { return ParseBytes(text) }
	if k.kind == kindShare {
		parse = func() (int64, error) { return parseShare(text, whole) }
	}
	n, err := parse()
	if err != nil {
		return err
	}
	if k.name == "memory.engine_share" && whole == 0 {
		return nil // the budget is at fault and reported
	}
	if n < k.min {
		return fmt.Errorf("%q is %d bytes, less than the smallest that works, %d", text, n, k.min)
	}
	*k.bytes(c) = n
	return nil
}

// resolve fills what defaults to something of the machine.
func (c *Config) resolve() {
	cores := runtime.GOMAXPROCS(0)
	if c.Processing.Workers == 0 {
		c.Processing.Workers = max(1, cores/2)
	}
	if c.SQL.Threads == 0 {
		c.SQL.Threads = cores
	}
	if c.SQL.TempDir == "" {
		c.SQL.TempDir = filepath.Join(c.DataDir, "tmp", "engine")
	}
}

// validate reports faults that concern several keys.
func (c *Config) validate() []error {
	var faults []error
	if c.DataDir == "" {
		faults = append(faults, errors.New("configuration key data_dir: empty; name a directory that this server alone uses"))
	}
	if n := c.Parts.PageRows; n&(n-1) != 0 || n > 1<<20 {
		faults = append(faults, fmt.Errorf("configuration key parts.page_rows: %d is not a power of two between 64 and 1048576", n))
	}
	if c.Memory.EngineShareBytes >= c.Memory.BudgetBytes {
		faults = append(faults, fmt.Errorf("configuration key memory.engine_share: %d bytes leave nothing of the memory.budget of %d for tables", c.Memory.EngineShareBytes, c.Memory.BudgetBytes))
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		faults = append(faults, errors.New("configuration keys tls.cert and tls.key: one is set without the other; set both or none"))
	}
	if c.Auth.Mode != "insecure" {
		for _, l := range [][2]string{{"http.listen", c.HTTP.Listen}, {"flight.listen", c.Flight.Listen}} {
			if !loopback(l[1]) {
				faults = append(faults, fmt.Errorf("configuration key %s: %s is reachable from other machines and nobody is asked who they are; listen on 127.0.0.1 or write auth.mode: insecure", l[0], l[1]))
			}
		}
	}
	return faults
}

// loopback tells whether only this machine can reach the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

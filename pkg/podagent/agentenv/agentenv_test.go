package agentenv

import (
	"strings"
	"testing"
	"time"
)

func full() Config {
	return Config{
		Scheduler: "127.0.0.1:7001", FunctionUID: "u-1", Function: "default/hello", Generation: 3,
		CID: "00000001-000002", Token: "secret", Protocol: ProtocolHTTP, Port: 8080, Concurrency: 4,
		StartupTimeout: 10 * time.Second, BackoffAfter: time.Second, IdleTimeout: time.Minute,
	}
}

// lookup is the environment env with some variables replaced.
func lookup(env []string, replaced map[string]string) func(string) string {
	return func(name string) string {
		if v, ok := replaced[name]; ok {
			return v
		}
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestParseReadsWhatEnvironWrites(t *testing.T) {
	got, err := Parse(lookup(full().Environ(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if got != full() {
		t.Errorf("got %+v, want %+v", got, full())
	}
}

func TestParseNamesEachMissingVariable(t *testing.T) {
	env := full().Environ()
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		_, err := Parse(lookup(env, map[string]string{name: ""}))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v does not name it", name, err)
		}
	}
}

func TestParseRefusesWrongValues(t *testing.T) {
	for _, wrong := range [][2]string{
		{"WINDLASS_PROTOCOL", "SMTP"},
		{"WINDLASS_FUNCTION", "hello"},
		{"WINDLASS_FUNCTION", "default/"},
		{"WINDLASS_PORT", "0"},
		{"WINDLASS_PORT", "65536"},
		{"WINDLASS_CONCURRENCY", "0"},
		{"WINDLASS_GENERATION", "-1"},
		{"WINDLASS_STARTUP_TIMEOUT", "soon"},
		{"WINDLASS_BACKOFF_AFTER", "0s"},
		{"WINDLASS_IDLE_TIMEOUT", "-1s"},
	} {
		name, bad := wrong[0], wrong[1]
		_, err := Parse(lookup(full().Environ(), map[string]string{name: bad}))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s=%s: error %v does not name both", name, bad, err)
		}
	}
}

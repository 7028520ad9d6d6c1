package agentenv

import (
	"strings"
	"testing"
	"time"
)

func full() Config {
	return Config{
		Scheduler: "127.0.0.1:7001", FunctionUID: "u-1", Function: "default/hello", Revision: "3",
		CID: "00000001-000002", Token: "secret", Protocol: ProtocolHTTP, Port: 8080, Concurrency: 4,
		StartupTimeout: 10 * time.Second, BackoffAfter: time.Second, IdleTimeout: time.Minute,
	}
}

func onANode() Config {
	c := full()
	c.Node, c.NodeTokenFile = "windlass-node.windlass.svc:9443", "/var/run/secrets/windlass.dev/node-token"
	return c
}

func inheriting() Config {
	c := full()
	c.Protocol, c.ListenerInherited, c.EndInherited = ProtocolLambdaRuntime, true, true
	c.Class, c.Slice = "Batch", 50*time.Millisecond
	return c
}

func spare() Config {
	return Config{
		Spare: true, Scheduler: "127.0.0.1:7001", Owner: "10.0.0.1:7001", Token: "secret",
		Protocol: ProtocolLambdaRuntime, Port: 9001, StartupTimeout: 10 * time.Second,
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
	for _, want := range []Config{full(), onANode(), inheriting(), spare()} {
		got, err := Parse(lookup(want.Environ(), nil))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestParseNamesEachMissingVariable(t *testing.T) {
	for _, config := range []Config{full(), spare()} {
		env := config.Environ()
		for _, kv := range env {
			name, _, _ := strings.Cut(kv, "=")
			_, err := Parse(lookup(env, map[string]string{name: ""}))
			if err == nil || !strings.Contains(err.Error(), name) && name != "WINDLASS_SPARE" {
				t.Errorf("without %s: error %v does not name it", name, err)
			}
		}
	}
}

func TestASpareInstanceIsTheFunctionsOnlyByItsAssignment(t *testing.T) {
	names := []string{"FUNCTION_UID", "FUNCTION", "REVISION", "INSTANCE", "CONCURRENCY", "BACKOFF_AFTER", "IDLE_TIMEOUT", "CLASS", "SLICE"}
	for _, name := range names {
		_, err := Parse(lookup(spare().Environ(), map[string]string{"WINDLASS_" + name: "1"}))
		if err == nil || !strings.Contains(err.Error(), "WINDLASS_"+name+" must not be set") {
			t.Errorf("with %s: error %v does not name it", name, err)
		}
	}
	_, err := Parse(lookup(spare().Environ(), map[string]string{"WINDLASS_PROTOCOL": ProtocolHTTP, "WINDLASS_SPARE": "yes"}))
	if err == nil || !strings.Contains(err.Error(), `WINDLASS_SPARE "yes"`) {
		t.Errorf("yes: %v", err)
	}
	_, err = Parse(lookup(spare().Environ(), map[string]string{"WINDLASS_PROTOCOL": ProtocolHTTP}))
	if err == nil || !strings.Contains(err.Error(), "must be LambdaRuntime") {
		t.Errorf("HTTP: %v", err)
	}
}

func TestOnlyAnAgentThatListensInheritsAListener(t *testing.T) {
	for value, wrong := range map[string]string{"true": "WINDLASS_LISTENER_INHERITED must not be set with WINDLASS_PROTOCOL HTTP", "3": `WINDLASS_LISTENER_INHERITED "3" is not true`} {
		_, err := Parse(lookup(full().Environ(), map[string]string{"WINDLASS_LISTENER_INHERITED": value}))
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: error %v, want one that says %q", value, err, wrong)
		}
	}
}

func TestATokenForANodeAgentComesWithItsAddress(t *testing.T) {
	_, err := Parse(lookup(onANode().Environ(), map[string]string{"WINDLASS_NODE": ""}))
	if err == nil || !strings.Contains(err.Error(), "WINDLASS_NODE must be set with WINDLASS_NODE_TOKEN_FILE") {
		t.Errorf("error %v does not name both", err)
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
		{"WINDLASS_STARTUP_TIMEOUT", "soon"},
		{"WINDLASS_BACKOFF_AFTER", "0s"},
		{"WINDLASS_IDLE_TIMEOUT", "-1s"},
		{"WINDLASS_SLICE", "-5ms"},
	} {
		name, bad := wrong[0], wrong[1]
		_, err := Parse(lookup(full().Environ(), map[string]string{name: bad}))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s=%s: error %v does not name both", name, bad, err)
		}
	}
}

func TestS11ACAComesWithItsDomain(t *testing.T) {
	for _, half := range []map[string]string{{"WINDLASS_CA": "", "WINDLASS_TLS_DOMAIN": "a.windlass"}, {"WINDLASS_CA": "PEM", "WINDLASS_TLS_DOMAIN": ""}} {
		if _, err := Parse(lookup(full().Environ(), half)); err == nil || !strings.Contains(err.Error(), "WINDLASS_CA and WINDLASS_TLS_DOMAIN") {
			t.Errorf("%v: error %v does not name both", half, err)
		}
	}
}

package lambdaenv

import (
	"regexp"
	"strings"
	"testing"
)

func values(t *testing.T, env []string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			t.Fatalf("%q is no NAME=value pair", kv)
		}
		if _, twice := m[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		if value == "" {
			t.Errorf("%s is empty, which some clients refuse", name)
		}
		m[name] = value
	}
	return m
}

func TestEnvironHoldsWhatTheConfigSays(t *testing.T) {
	got := values(t, Environ(Config{
		RuntimeAPI: "127.0.0.1:9001", Namespace: "shop", Function: "hello", Handler: "app.handler",
		TaskRoot: "/code", MemoryMB: 256, Concurrency: 4,
	}))
	for name, want := range map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          "127.0.0.1:9001",
		"_HANDLER":                        "app.handler",
		"LAMBDA_TASK_ROOT":                "/code",
		"AWS_LAMBDA_FUNCTION_NAME":        "hello",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/windlass/shop/hello",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_MAX_CONCURRENCY":      "4",
		"AWS_LAMBDA_NODEJS_WORKER_COUNT":  "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestEnvironLeavesOutWhatWouldMisleadAClient(t *testing.T) {
	got := values(t, Environ(Config{RuntimeAPI: "127.0.0.1:9001", Namespace: "n", Function: "f", Concurrency: 1}))
	for _, name := range []string{"AWS_LAMBDA_MAX_CONCURRENCY", "_HANDLER"} {
		if v, there := got[name]; there {
			t.Errorf("%s is %q, want it left out", name, v)
		}
	}
	if got["LAMBDA_TASK_ROOT"] != "/var/task" || got["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] != "128" {
		t.Errorf("task root %q and memory %q, want /var/task and 128", got["LAMBDA_TASK_ROOT"], got["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
	}
}

func TestARNIsOfTheFormThatSDKsParse(t *testing.T) {
	got := ARN("shop", "hello")
	if !regexp.MustCompile(`^arn:aws:lambda:[a-z0-9-]+:\d{12}:function:shop-hello$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
}

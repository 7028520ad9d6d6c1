package agentenv

import (
	"strings"
	"testing"
)

// FuzzParse reads any environment. What is accepted means the same once written.
func FuzzParse(f *testing.F) {
	f.Add("WINDLASS_SCHEDULER=s:1\nWINDLASS_FUNCTION_UID=u\nWINDLASS_FUNCTION=n/f\nWINDLASS_GENERATION=1\nWINDLASS_INSTANCE=c\nWINDLASS_TOKEN=t\n" +
		"WINDLASS_PROTOCOL=http\nWINDLASS_PORT=8080\nWINDLASS_CONCURRENCY=1\nWINDLASS_STARTUP_TIMEOUT=1s\nWINDLASS_BACKOFF_AFTER=1m\nWINDLASS_IDLE_TIMEOUT=1h")
	f.Add("WINDLASS_PORT=-1\nWINDLASS_PORT\nWINDLASS_GENERATION=9223372036854775808\nWINDLASS_IDLE_TIMEOUT=1e9h")
	f.Add("WINDLASS_SPARE=true\nWINDLASS_SCHEDULER=s:1\nWINDLASS_OWNER=o:1\nWINDLASS_TOKEN=t\nWINDLASS_PROTOCOL=LambdaRuntime\nWINDLASS_PORT=9001\nWINDLASS_STARTUP_TIMEOUT=1m")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := Parse(variables(strings.Split(text, "\n")))
		if err != nil {
			return
		}
		again, err := Parse(variables(config.Environ()))
		if err != nil || again != config {
			t.Errorf("%+v came back as %+v, %v", config, again, err)
		}
		if config.Port < 1 || config.Port > 65535 || config.Spare != (config.Concurrency < 1) || config.Spare != (config.IdleTimeout <= 0) {
			t.Errorf("accepted %+v", config)
		}
	})
}

func variables(pairs []string) func(string) string {
	env := make(map[string]string)
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return func(name string) string { return env[name] }
}

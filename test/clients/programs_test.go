//go:build clients

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/published"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// domain is that of the functions' own hosts.
const domain = "fn.lab"

// host is the own host of a function.
func host(function string) string { return function + "--" + lab.Namespace + "." + domain }

// path is where a function is on every host.
func path(function string) string { return "/function/" + function + "." + lab.Namespace }

// url is where the first gateway has a function.
func url(function string) string { return windlass.CallURL(windlass.Gateways[0]) + path(function) }

// gatewayAddr is where the first gateway takes calls, host:port.
func gatewayAddr() string {
	return strings.TrimPrefix(windlass.CallURL(windlass.Gateways[0]), "http://")
}

// ask gets a page that must be good.
func ask(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// only waits until a function has one instance, and returns it. Right after a start, schedulers that do
// not know each other yet may each have launched one: the others leave soon.
func only(t *testing.T, function string) (instance *lab.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	err := sleep.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		all := windlass.Kubelet.PodsOf(function)
		if len(all) == 1 {
			instance = all[0]
		}
		return instance != nil, nil
	})
	if err != nil {
		t.Fatalf("%s does not have one instance: %v", function, err)
	}
	return instance
}

// needs ends the test on a machine without a program.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		lacks(t, fmt.Errorf("%s is not installed", program))
	}
}

// installed is the folder of a published program. The test ends if it could not be installed.
func installed(t *testing.T, program published.Program) string {
	t.Helper()
	folder, err := program.Folder()
	if err != nil {
		lacks(t, err)
	}
	return folder
}

// lacks skips a test that lacks a program. In CI, which installs them all, it fails.
func lacks(t *testing.T, why error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// runWithin bounds one run of a client that has no bound of its own.
const runWithin = time.Minute

// output runs a client to its end, and returns what it printed.
func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	needs(t, name)
	ctx, cancel := context.WithTimeout(t.Context(), runWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(arguments, " "), err, failed.String())
	}
	return string(out)
}

// background starts a program that runs until the test ends, and returns when it answers at all urls.
func background(t *testing.T, cmd *exec.Cmd, urls ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	err = sleep.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		for _, url := range urls {
			if _, err := ask(ctx, url); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("%s does not serve: %v: %s", cmd.Path, err, said)
	}
}

// seen is what the function says it saw of a call.
type seen struct {
	Method, Proto, Host, Query, Instance string
	Length                               int64
	Header, Trailer                      http.Header
	Bytes                                int64
	Sum                                  string
}

func readSeen(t *testing.T, body []byte) seen {
	t.Helper()
	var s seen
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("the function did not answer, but %v: %q", err, body)
	}
	return s
}

// figure prints a measurement.
func figure(format string, arguments ...any) { fmt.Fprintf(os.Stdout, format+"\n", arguments...) }

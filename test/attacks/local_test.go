package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
)

// localWindlass is a local Windlass with one function, which tells where it finds the
// Runtime API, and how often it was called.
type localWindlass struct {
	*platform
	*local.Windlass
}

// localState is an answer of that function.
type localState struct {
	API   string
	Calls int
}

func (w *platform) startLocal() *localWindlass {
	w.Helper()
	config := local.DefaultConfig()
	config.DataDir, config.AgentPath = w.TempDir(), agentProgram
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	opened, err := local.Open(config, slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	w.runs(opened.Run)
	receive(w.T, opened.Ready(), "a local Windlass")
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "own"}}
	fn.Spec.Template.Command, fn.Spec.Template.Protocol = []string{self(w)}, v1alpha1.ProtocolLambdaRuntime
	fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: part, Value: partRuntime}}
	v1alpha1.Default(fn)
	if _, err := opened.Store().Apply(fn); err != nil {
		w.Fatal(err)
	}
	return &localWindlass{w, opened}
}

func self(w *platform) string {
	w.Helper()
	path, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	return path
}

// called calls the function as its owner does.
func (l *localWindlass) called() (t localState) {
	l.Helper()
	resp, err := http.Post(l.GatewayURL()+"/function/own", "application/json", strings.NewReader("{}"))
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(text, &t); err != nil {
		l.Fatalf("answered %s: %s", resp.Status, text)
	}
	return t
}

// page is a web page of somebody else that a developer has open: it may send what needs
// no preflight, and by a name of its own that leads to the loopback it may read answers.
var pageAttacks = []attack{
	{"F108", "S8: a page posts to a function", "", visits("GatewayURL", "POST", "/function/own", "Host: %s", "Origin: https://attacker.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain")},
	{"F108", "S8: an image of a page calls a function", "", visits("GatewayURL", "GET", "/function/own", "Host: %s", "Sec-Fetch-Site: cross-site")},
	{"F108", "S8: a page of another port calls a function", "", visits("GatewayURL", "POST", "/function/own", "Host: %s", "Origin: http://localhost:1", "Sec-Fetch-Site: same-site")},
	{"F108", "S8: a page in a sandbox calls a function", "", visits("GatewayURL", "POST", "/function/own", "Host: %s", "Origin: null")},
	{"F108", "S8: a rebound name calls a function", "", visits("GatewayURL", "POST", "/function/own", "Host: attacker.example", "Origin: http://attacker.example", "Sec-Fetch-Site: same-origin")},
	{"F108", "S8: a rebound name reads the metrics", "", visits("OpsURL", "GET", "/metrics", "Host: attacker.example")},
	{"F108", "S8: a page reads the metrics", "", visits("OpsURL", "GET", "/metrics", "Host: %s", "Origin: https://attacker.example")},
	{"F108", "S8: a rebound name reads the status page", "", visits("OpsURL", "GET", "/status.json", "Host: attacker.example", "Sec-Fetch-Site: same-origin")},
	{"F108", "S8: a page reads the status page", "", visits("OpsURL", "GET", "/status.json", "Host: %s", "Sec-Fetch-Site: cross-site")},
}

// visits sends a request with these headers, in which %s is the address, to a local
// Windlass. It must be refused, and the function must not run.
func visits(at, method, path string, headers ...string) func(*platform) {
	return func(w *platform) {
		l := w.startLocal()
		addr := strings.TrimPrefix(map[string]string{"GatewayURL": l.GatewayURL(), "OpsURL": l.OpsURL()}[at], "http://")
		before := l.called().Calls
		text := method + " " + path + " HTTP/1.1\r\n" + strings.ReplaceAll(strings.Join(headers, "\r\n"), "%s", addr) + "\r\nContent-Length: 0\r\n\r\n"
		r := w.rawTo(addr, text)
		if r.status != http.StatusForbidden || strings.Contains(r.body, "windlass_") {
			w.Errorf("answered %d, %v: %.300s", r.status, r.err, r.body)
		}
		if at == "GatewayURL" && r.header.Get("Windlass-Executed") != "no" {
			w.Errorf("answered with %v", r.header)
		}
		if now := l.called().Calls; now != before+1 {
			w.Errorf("the function was called %d times besides", now-before-1)
		}
	}
}

// nobody is a user who owns nothing.
const nobody = 65534

// userAttacks need another user, so they are run by root only.
var userAttacks = []attack{
	{"F107", "S7: another user speaks to the wire and to the Runtime API", "", func(w *platform) {
		before := listening(w)
		l := w.startLocal()
		api := l.called().API
		targets := []string{api}
		calls, ops := strings.TrimPrefix(l.GatewayURL(), "http://"), strings.TrimPrefix(l.OpsURL(), "http://")
		for addr := range listening(w) {
			if !before[addr] && addr != calls && addr != ops {
				targets = append(targets, addr) // the wire, and whatever else there is
			}
		}
		own, others := w.knocks(os.Getuid(), targets), w.knocks(nobody, targets)
		if len(targets) < 2 || strings.Count(own, "answered") < 2 {
			w.Errorf("at %v the same user is answered: %q", targets, own)
		}
		if others != "" {
			w.Errorf("at %v another user is answered: %s", targets, others)
		}
		l.called()
	}},
}

// knocks speaks to addresses as a process of a user, and is what it was answered.
func (w *platform) knocks(uid int, addrs []string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The folder of the program may be closed to that user, and this name is not.
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{part + "=" + partStranger, targetsVariable + "=" + strings.Join(addrs, ",")}
	cmd.Dir = "/"
	if uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("a process of user %d: %v\n%s", uid, err, out)
	}
	return string(out)
}

// listening are the addresses of version 4 at which this process listens.
func listening(w *platform) map[string]bool {
	w.Helper()
	own := make(map[string]bool)
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if link, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
		}
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		w.Fatal(err)
	}
	addrs := make(map[string]bool)
	for line := range strings.Lines(string(table)) {
		var a, b, c, d byte
		var port int
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != "0A" || !own[fields[9]] {
			continue
		}
		if _, err := fmt.Sscanf(fields[1], "%02X%02X%02X%02X:%04X", &d, &c, &b, &a, &port); err != nil {
			w.Fatal(err)
		}
		addrs[net.JoinHostPort(net.IPv4(a, b, c, d).String(), itoa(port))] = true
	}
	return addrs
}

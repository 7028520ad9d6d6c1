//go:build clients

package gateway_test

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

// browserPage is what the evil function does in a browser, and then both functions look at
// what there is. Browsers know names below localhost, and take localhost for a public
// suffix, as a domain on the Public Suffix List.
const browserPage = `<!doctype html><script>
const evil = EVIL, victim = VICTIM;
async function look() {
  const found = {
    cookies: document.cookie,
    stored: localStorage.length,
    caches: (await caches.keys()).join(),
    workers: (await navigator.serviceWorker.getRegistrations()).length,
    fetched: await (await fetch('/hijack')).text(),
  };
  await fetch('/report?' + new URLSearchParams(found));
}
async function start() {
  document.cookie = 'script=1; Max-Age=600; Path=/';
  document.cookie = 'wide=1; Max-Age=600; Path=/; Domain=localhost';
  localStorage.evil = 1;
  await caches.open('evil');
  await navigator.serviceWorker.register('/deep/worker.js', {scope: '/'});
  await navigator.serviceWorker.ready;
  const read = await fetch(victim + '/secret', {credentials: 'include'}).then(r => r.text(), () => 'unreadable');
  await fetch('/report?' + new URLSearchParams({read}));
  location = victim + '/look';
}
({
  '/start': start,
  '/look': () => look().then(() => { if (location.origin == victim) location = evil + '/look'; }),
})[location.pathname]();
</script>`

// browserWorker answers /hijack in place of the network.
const browserWorker = `
self.oninstall = e => e.waitUntil(skipWaiting());
self.onactivate = e => e.waitUntil(clients.claim());
self.onfetch = e => { if (new URL(e.request.url).pathname == '/hijack') e.respondWith(new Response('hijacked')); };
`

// browse opens an address in a browser without a window, until the test ends.
func browse(t *testing.T, address string) {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// Children of the browser may write into it for a moment after it was killed.
		kept, err := os.MkdirTemp("", "browser")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(kept) })
		cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
			"--user-data-dir="+kept, "--remote-debugging-port=0", address)
		// What is on the PATH may be a script, which would leave the browser behind.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		})
		return
	}
	t.Skip("there is no Chromium: install the Debian package chromium-headless-shell")
}

// What the page of one function keeps in a browser does not touch another's, and its page
// cannot read what the other answers.
func TestFunctionsOnHostsOfTheirOwnCannotTouchEachOtherInABrowser(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) {
		hosts, err := address.NewHosts("localhost", address.DefaultTemplate)
		if err != nil {
			t.Fatal(err)
		}
		if c.URLs, err = address.NewURLs("", hosts); err != nil {
			t.Fatal(err)
		}
	})
	w.put("default", "evil", time.Minute)
	w.put("default", "victim", time.Minute)
	_, port, _ := strings.Cut(strings.TrimPrefix(w.url, "http://"), ":")
	origin := func(name string) string { return "http://" + name + "--default.localhost:" + port }
	page := strings.NewReplacer("EVIL", "'"+origin("evil")+"'", "VICTIM", "'"+origin("victim")+"'").Replace(browserPage)
	browse(t, origin("evil")+"/start")

	var reports []map[string]string
	for len(reports) < 3 {
		ticket := w.scheduler.ticket()
		i := w.claim(ticket)
		at, err := url.Parse(i.granted.RequestURI)
		if err != nil {
			t.Fatal(err)
		}
		evil := strings.HasSuffix(ticket.GetFunctionUid(), "evil")
		switch {
		case at.Path == "/report":
			report := map[string]string{"by": strings.TrimPrefix(ticket.GetFunctionUid(), "uid-of-default-")}
			for name := range at.Query() {
				report[name] = at.Query().Get(name)
			}
			reports = append(reports, report)
			i.whole(204, "")
		case evil && at.Path == "/deep/worker.js":
			i.whole(200, browserWorker, "Content-Type", "text/javascript", "Service-Worker-Allowed", "/")
		case evil && at.Path == "/start":
			i.whole(200, page, "Content-Type", "text/html", "Set-Cookie", "header=1; Max-Age=600; Path=/; Domain=localhost")
		case at.Path == "/look":
			i.whole(200, page, "Content-Type", "text/html")
		default:
			i.whole(200, "from the network", "Content-Type", "text/plain")
		}
	}
	want := []map[string]string{
		{"by": "evil", "read": "unreadable"},
		{"by": "victim", "cookies": "", "stored": "0", "caches": "", "workers": "0", "fetched": "from the network"},
		{"by": "evil", "cookies": "header=1; script=1", "stored": "1", "caches": "evil", "workers": "1", "fetched": "hijacked"},
	}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Error(diff)
	}
}

package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// A watch does not report a function that was gone before it began, or before its first turn came.
func TestFunctionsThatGoBeforeAWatchReportsThemLeaveNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		functions := catalog.New()
		put := func(name string, hosts ...v1alpha1.Hostname) {
			fn := &v1alpha1.Function{}
			fn.Name, fn.Spec.Expose.Hosts = name, hosts
			functions.Put(rollout.Alone(fn))
		}
		put("early", "early.example.org")
		put("first", "first.example.org")
		put("late", "late.example.org")
		config := DefaultConfig()
		config.ClaimAddr = "127.0.0.1:1"
		g, err := New(config, Deps{
			Catalog: watchedCatalog{functions, func(catalog.Event) { functions.Remove(invocation.FunctionKey{Name: "late"}) }},
			Router:  ownership.NewStatic(ownership.Owner{ID: "one", Addr: "one"}),
		})
		if err != nil {
			t.Fatal(err)
		}
		asked := func(host string) bool { _, _, claimed := g.own.owner(host); return claimed }
		if !asked("early.example.org") || !asked("first.example.org") || !asked("late.example.org") {
			t.Fatal("a gateway that does not run yet knows no hosts")
		}
		functions.Remove(invocation.FunctionKey{Name: "early"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		time.Sleep(dropEvery + time.Second)
		if asked("early.example.org") {
			t.Error("the host of a function that went before the watch is kept")
		}
		if asked("late.example.org") {
			t.Error("the host of a function that went while the watch began is kept")
		}
		if !asked("first.example.org") {
			t.Error("the host of a function that exists is gone")
		}
		cancel()
		<-ended
	})
}

// watchedCatalog calls reported after each event.
type watchedCatalog struct {
	*catalog.Catalog
	reported func(catalog.Event)
}

func (c watchedCatalog) Watch(ctx context.Context, handle func(catalog.Event)) error {
	return c.Catalog.Watch(ctx, func(e catalog.Event) {
		handle(e)
		c.reported(e)
	})
}

func TestCookiesStayWithTheirFunction(t *testing.T) {
	const at = "/function/shop.team"
	for cookie, want := range map[string]struct{ shared, apart string }{
		"a=1":                                     {"a=1; Path=" + at, "a=1"},
		"a=1; Path=/":                             {"a=1; Path=" + at, "a=1; Path=/"},
		"a=1; path = / ; HttpOnly":                {"a=1; HttpOnly; Path=" + at, "a=1; path = / ; HttpOnly"},
		"a=1; Path=/cart":                         {"a=1; Path=" + at + "/cart", "a=1; Path=/cart"},
		"a=1; Path=" + at:                         {"a=1; Path=" + at, "a=1; Path=" + at},
		"a=1; Path=" + at + "/cart":               {"a=1; Path=" + at + "/cart", "a=1; Path=" + at + "/cart"},
		"a=1; Path=" + at + "x":                   {"a=1; Path=" + at + at + "x", "a=1; Path=" + at + "x"},
		"a=1; Path=" + at + "; Path=/; Secure":    {"a=1; Secure; Path=" + at, "a=1; Path=" + at + "; Path=/; Secure"},
		"a=1; Path=":                              {"a=1; Path=" + at, "a=1; Path="},
		"a=1; Path":                               {"a=1; Path=" + at, "a=1; Path"},
		"a=1;\tPATH\t=\t/":                        {"a=1; Path=" + at, "a=1;\tPATH\t=\t/"},
		"a=1; Domain=example.com":                 {"a=1; Path=" + at, "a=1"},
		"a=1; domain=.example.com; Max-Age=5":     {"a=1; Max-Age=5; Path=" + at, "a=1; Max-Age=5"},
		"a=1; Domain=a.example; Domain=b.example": {"a=1; Path=" + at, "a=1"},
		"Path=/; Domain=x":                        {"Path=/; Path=" + at, "Path=/"},
		"a=1; SameSite=Lax; Expires=Mon, 23 Nov 2026 GMT;": {"a=1; SameSite=Lax; Expires=Mon, 23 Nov 2026 GMT;; Path=" + at, "a=1; SameSite=Lax; Expires=Mon, 23 Nov 2026 GMT;"},
		"": {"; Path=" + at, ""},
	} {
		if got := keepCookie(cookie, at); got != want.shared {
			t.Errorf("%q on the shared origin: %q, want %q", cookie, got, want.shared)
		}
		if got := keepCookie(cookie, ""); got != want.apart {
			t.Errorf("%q on an origin of its own: %q, want %q", cookie, got, want.apart)
		}
	}
}

// browser is what a browser takes for the path and the domain of a cookie (RFC 6265, 5.2).
func browser(cookie string) (path, domain string) {
	_, attributes, _ := strings.Cut(cookie, ";")
	for attribute := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(attribute, "=")
		name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
		switch strings.ToLower(name) {
		case "path":
			if path = value; !strings.HasPrefix(value, "/") {
				path = "/the/default"
			}
		case "domain":
			domain = value
		}
	}
	return path, domain
}

func TestNoCookieReachesBeyondItsFunction(t *testing.T) {
	const at = "/function/shop"
	part := rapid.SampledFrom([]string{"a=1", ";", " ", "\t", "=", "/", "Path", "path=/", "Domain", "domain=example.com", at, "Secure", "é", "\x00", ","})
	rapid.Check(t, func(t *rapid.T) {
		cookie := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
		path, domain := browser(keepCookie(cookie, at))
		if path != at && !strings.HasPrefix(path, at+"/") || domain != "" {
			t.Errorf("%q has the path %q and the domain %q", cookie, path, domain)
		}
		if _, domain := browser(keepCookie(cookie, "")); domain != "" {
			t.Errorf("%q has the domain %q on an origin of its own", cookie, domain)
		}
	})
}

func TestHeadersThatReachBeyondAPath(t *testing.T) {
	for header, want := range map[string]struct{ shared, apart string }{
		"Service-Worker-Allowed: /":                             {"", "/"},
		"Strict-Transport-Security: max-age=0":                  {"", "max-age=0"},
		"Alt-Svc: h3=\":443\"":                                  {"", "h3=\":443\""},
		"Clear-Site-Data: \"storage\"":                          {"", "\"storage\""},
		"Clear-Site-Data: \"storage\", \"Cookies\"":             {"", ""},
		"Clear-Site-Data: \"*\"":                                {"", ""},
		"Content-Security-Policy: default-src 'self'":           {"default-src 'self'", "default-src 'self'"},
		"Access-Control-Allow-Origin: https://shop.example.com": {"https://shop.example.com", "https://shop.example.com"},
	} {
		name, value, _ := strings.Cut(header, ": ")
		for shared, want := range map[string]string{"/function/f": want.shared, "": want.apart} {
			if got, kept := filterHeader(name, value, shared); kept != (want != "") || kept && got != want {
				t.Errorf("%s below %q: %q, kept %t", header, shared, got, kept)
			}
		}
	}
}

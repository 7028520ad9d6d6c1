package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

const helloHost = "hello--default.fn.example.com"

// withHosts gives functions hosts below fn.example.com.
func withHosts(c *gateway.Config) {
	hosts, _ := address.NewHosts("fn.example.com", address.DefaultTemplate)
	c.URLs, _ = address.NewURLs("https://gateway.example.com", hosts)
}

// at is a request for a path on a host.
func (w *harness) at(host, path string) *http.Request {
	r := w.get(path)
	r.Host = host
	return r
}

// reached is the function that gets a call, and what it sees of its address.
func (w *harness) reached(answers <-chan answer, headers ...string) (uid, uri, host string, a answer) {
	w.Helper()
	ticket := w.scheduler.ticket()
	i := w.claim(ticket)
	i.whole(200, "", headers...)
	return strings.TrimPrefix(ticket.GetFunctionUid(), "uid-of-"), i.granted.RequestURI, i.granted.Host, wrote(w.T, answers, 200, invocation.ExecutedYes)
}

func TestAFunctionHasAnOriginOfItsOwn(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		w.put("team", "hello", time.Minute)
		for _, tt := range []struct{ host, path, uid, uri string }{
			{helloHost, "/", "default-hello", "/"},
			{helloHost, "/a%2Fb//c?d=e", "default-hello", "/a%2Fb//c?d=e"},
			{"HELLO--Default.FN.example.com:8443", "/a", "default-hello", "/a"},
			{helloHost + ".", "/a", "default-hello", "/a"},
			{"hello--team.fn.example.com", "/a", "team-hello", "/a"},
			// Its paths are its own, also those that name others on the shared origin.
			{helloHost, "/function/hello.team/a", "default-hello", "/function/hello.team/a"},
			{helloHost, "/calls/1", "default-hello", "/calls/1"},
			{helloHost, "/.well-known/acme-challenge/x", "default-hello", "/.well-known/acme-challenge/x"},
			{helloHost, "/.well-known/windlassx", "default-hello", "/.well-known/windlassx"},
			// Everywhere else the path says which function it is.
			{"other.example.com", "/function/hello.team/a", "team-hello", "/a"},
			{"fn.example.com", "/function/hello/a", "default-hello", "/a"},
			{"xfn.example.com", "/function/hello/a", "default-hello", "/a"},
		} {
			uid, uri, host, _ := w.reached(w.callWith(client, w.at(tt.host, tt.path)))
			if uid != tt.uid || uri != tt.uri || host != tt.host {
				w.Errorf("%s%s: called %s with %s on %s", tt.host, tt.path, uid, uri, host)
			}
		}
		for host, want := range map[string]string{
			"nobody--default.fn.example.com": "FunctionNotFound", "hello.fn.example.com": "FunctionNotFound", "a.b.fn.example.com": "FunctionNotFound",
			"hello--default.x.fn.example.com": "FunctionNotFound", helloHost: "UnknownPath",
		} {
			path := "/function/hello/a"
			if host == helloHost {
				path = "/.well-known/windlass/a"
			}
			problem(w.T, wrote(w.T, w.callWith(client, w.at(host, path)), 404, invocation.ExecutedNo), want)
		}
	}, withHosts)
}

// The names of both, with two hyphens between them, are a--b--c.
func TestNamesWithTwoHyphensShareNoHost(t *testing.T) {
	w := newHarness(t, withHosts)
	w.put("b--c", "a", time.Minute)
	w.put("c", "a--b", time.Minute)
	for host, want := range map[string]string{"a--b----c.fn.example.com": "b--c-a", "a----b--c.fn.example.com": "c-a--b"} {
		if uid, _, _, _ := w.reached(w.call(w.at(host, "/"))); uid != want {
			t.Errorf("%s is of %s, want %s", host, uid, want)
		}
	}
	problem(t, wrote(t, w.call(w.at("a--b--c.fn.example.com", "/")), 404, invocation.ExecutedNo), "FunctionNotFound")
}

func TestATagHasAHostOfItsOwn(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		w.route(part{"live", 6, 100}, part{"next", 7, 0})
		for _, tt := range []struct{ host, header, uid string }{
			{helloHost, "", "r-6"},
			{helloHost, "next", "r-7"},
			{"live---" + helloHost, "", "r-6"},
			{"next---" + helloHost, "", "r-7"},
			{"NEXT---" + helloHost + ".:80", "", "r-7"},
			// It is an origin of that tag, whatever a page there says.
			{"next---" + helloHost, "live", "r-7"},
			{"next---" + helloHost, "gone", "r-7"},
		} {
			r := w.at(tt.host, "/function/other/a")
			if tt.header != "" {
				r.Header.Set(invocation.HeaderTag, tt.header)
			}
			answers := w.callWith(client, r)
			i := w.claim(w.nextFor(tt.uid))
			i.whole(200, "", "Strict-Transport-Security", "max-age=1")
			a := wrote(w.T, answers, 200, invocation.ExecutedYes)
			if got := i.granted.RequestURI; got != "/function/other/a" || a.header.Get("Strict-Transport-Security") == "" {
				w.Errorf("%s: called with %s, answered with %v", tt.host, got, a.header)
			}
		}
		for host, want := range map[string]string{
			"gone---" + helloHost: "UnknownTag", "next---next---" + helloHost: "FunctionNotFound", "next----" + helloHost: "FunctionNotFound", "---" + helloHost: "FunctionNotFound",
		} {
			problem(w.T, wrote(w.T, w.callWith(client, w.at(host, "/")), 404, invocation.ExecutedNo), want)
		}
		problem(w.T, wrote(w.T, w.callWith(client, w.at("next---"+helloHost, "/.well-known/windlass/")), 404, invocation.ExecutedNo), "UnknownPath")
	}, withHosts)
}

// asks makes a function ask for hosts.
func (w *harness) asks(namespace, name string, created int64, hosts ...v1alpha1.Hostname) {
	fn := w.put(namespace, name, time.Minute).DeepCopy()
	fn.CreationTimestamp, fn.Spec.Expose.Hosts = metav1.Unix(created, 0), hosts
	w.catalog.Put(rollout.Alone(fn))
}

// awaitOwner returns when a function has a host, or nobody if it is "".
func (w *harness) awaitOwner(host, uid string) {
	w.Helper()
	until(w.T, fmt.Sprintf("%s is of %q", host, uid), func() bool {
		owner, known := w.gateway.HostOwner(host)
		return known == (uid != "") && (!known || owner.Namespace+"-"+owner.Name == uid)
	})
}

func TestAFunctionHasAHostThatItsNamespaceMayHave(t *testing.T) {
	const shop, denied = "shop.example.org", "other.example.org"
	var open atomic.Bool
	permits := func(namespace, host string) bool {
		return namespace == "open" && host != denied || open.Load()
	}
	w := newGuardedHarness(t, guard{permits: permits}, withHosts)
	w.asks("open", "a", 5, shop, denied, "gateway.example.com", "hello--default.fn.example.com", "fn.example.com")
	w.awaitOwner(shop, "open-a")
	for _, host := range []string{"SHOP.example.org:8443", shop + "."} {
		if uid, uri, _, _ := w.reached(w.call(w.at(host, "/function/x/b?c"))); uid != "open-a" || uri != "/function/x/b?c" {
			t.Errorf("%s: called %s with %s", host, uid, uri)
		}
	}
	for host, want := range map[string]string{
		shop: "UnknownPath", "gateway.example.com": "UnknownPath", "fn.example.com": "UnknownPath", "x." + shop: "UnknownPath", denied: "HostNotPermitted",
	} {
		problem(t, wrote(t, w.call(w.at(host, "/.well-known/windlass/")), 404, invocation.ExecutedNo), want)
	}
	// Nobody loses a path by what others ask for.
	for _, host := range []string{denied, "gateway.example.com", "fn.example.com"} {
		if uid, _, _, _ := w.reached(w.call(w.at(host, "/function/a.open/b"))); uid != "open-a" {
			t.Errorf("%s: called %s", host, uid)
		}
	}
	// Older ones that may not have it change nothing, until they may.
	w.asks("later", "b", 1, shop)
	w.asks("open", "c", 6, shop)
	if uid, _, _, _ := w.reached(w.call(w.at(shop, "/"))); uid != "open-a" {
		t.Errorf("called %s", uid)
	}
	w.catalog.Remove(invocation.FunctionKey{Namespace: "open", Name: "a"})
	w.awaitOwner(shop, "open-c")
	w.asks("open", "c", 6)
	w.awaitOwner(shop, "")
	open.Store(true)
	r := w.at(shop, "/")
	r.Header.Set(invocation.HeaderKey, "for-later")
	if uid, _, _, _ := w.reached(w.call(r)); uid != "later-b" {
		t.Errorf("called %s", uid)
	}
}

func TestWhatReachesBeyondAPathStaysOnAnOriginOfItsOwn(t *testing.T) {
	w := newHarness(t, withHosts)
	said := []string{
		"Service-Worker-Allowed", "/", "Strict-Transport-Security", "max-age=0", "Clear-Site-Data", `"storage"`,
		"Set-Cookie", "a=1; Path=/; Domain=fn.example.com", "Set-Cookie", "b=2",
	}
	names := []string{"Service-Worker-Allowed", "Strict-Transport-Security", "Clear-Site-Data", "Set-Cookie"}
	for name, tt := range map[string]struct {
		r    *http.Request
		want http.Header
	}{
		"on the shared origin": {w.get("/function/hello.default/a"), http.Header{
			"Set-Cookie": {"a=1; Path=/function/hello.default", "b=2; Path=/function/hello.default"}}},
		"on its own": {w.at(helloHost, "/a"), http.Header{
			"Service-Worker-Allowed": {"/"}, "Strict-Transport-Security": {"max-age=0"}, "Clear-Site-Data": {`"storage"`},
			"Set-Cookie": {"a=1; Path=/", "b=2"}}},
	} {
		_, _, _, a := w.reached(w.call(tt.r), said...)
		got := http.Header{}
		for _, n := range names {
			if v := a.header[n]; v != nil {
				got[n] = v
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Preferences may be ignored (RFC 7240, 2), and nobody is told that one was honoured.
func TestAnAnswerLaterIsNotSupported(t *testing.T) {
	w := newHarness(t)
	r := w.get("/function/hello")
	r.Header.Set("Prefer", "respond-async, wait=1")
	answers := w.call(r)
	i := w.take()
	if got := i.header("Prefer"); got != "respond-async, wait=1" {
		t.Errorf("the function was told %q", got)
	}
	i.whole(200, "now")
	a := wrote(t, answers, 200, invocation.ExecutedYes)
	if a.body != "now" || a.header.Get("Preference-Applied") != "" || a.header.Get("Location") != "" {
		t.Errorf("answered %+v", a)
	}
	problem(t, wrote(t, w.call(w.get("/calls/"+a.header.Get(invocation.HeaderInvocationID))), 404, invocation.ExecutedNo), "UnknownPath")
}

// header is what the function sees of a header of the request.
func (i *instance) header(name string) string {
	for _, h := range i.granted.Header {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

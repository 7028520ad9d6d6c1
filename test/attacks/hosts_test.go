package attacks

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

const (
	hostsDomain = "fn.example.com"
	honestHost  = honest + "--shop." + hostsDomain
	// gatewayHost is that of the gateways, ownHost one that honest has, and deniedHost one
	// that no function may have.
	gatewayHost = "gateway.example"
	ownHost     = "shop.example.org"
	deniedHost  = "denied.example.org"
)

// newURLs are those of the functions of the world.
func newURLs(w *platform) address.URLs {
	w.Helper()
	hosts, err := address.NewHosts(hostsDomain, address.DefaultTemplate)
	if err != nil {
		w.Fatal(err)
	}
	urls, err := address.NewURLs("https://"+gatewayHost, hosts)
	if err != nil {
		w.Fatal(err)
	}
	return urls
}

// nobodys are hosts below the domain that are no function's. On none of them a path may
// name a function.
var nobodys = []string{
	"nobody--shop." + hostsDomain, "honest.shop." + hostsDomain, "honest-shop." + hostsDomain, "honest--shop.x." + hostsDomain, "x." + honestHost,
	"honest---shop." + hostsDomain, "-honest--shop." + hostsDomain, "honest--shop-." + hostsDomain, "honest--shop." + hostsDomain + ".." + hostsDomain,
	"shop--honest." + hostsDomain, "honest." + hostsDomain, "--." + hostsDomain, "." + hostsDomain, "*." + hostsDomain, "honest%2d%2dshop." + hostsDomain,
	"honest--sho%70." + hostsDomain, "honest--shop%00." + hostsDomain, "honest--shop,." + hostsDomain, "honest--shop." + hostsDomain + "," + honestHost,
	"honest--shop\xe3\x80\x82" + "x." + hostsDomain, strings.Repeat("a", 2_000) + "." + hostsDomain, marker + "." + hostsDomain, "nobody--shop." + hostsDomain + ".:80",
	"NOBODY--SHOP." + strings.ToUpper(hostsDomain),
	"nobody---" + honestHost, "---" + honestHost, "honest---honest---" + honestHost, "nobody----" + honestHost, "xn---" + honestHost, "NOBODY---" + honestHost + ".:80",
	"honest----shop." + hostsDomain, "honest--shop---." + hostsDomain, "nobody--." + honestHost,
}

// alike are hosts that somebody might take for that of honest.
var alike = []string{
	honestHost + ".example.com", honestHost + "..", "x" + honestHost + "x", honestHost + "@evil.example", "evil.example@" + honestHost, honestHost + ":80:80",
	honestHost + "%00", honestHost + "/..", honestHost + "\\", honestHost + "#", honestHost + "?", "[" + honestHost + "]", "[::1]." + honestHost + "x",
	"honest--shop.fn\xe3\x80\x82example.com", "honest--shop." + hostsDomain + ",evil.example", "honest--shop.fn.exampie.com", "honest--shop",
}

// alikeOwn are hosts that somebody might take for ownHost.
var alikeOwn = []string{
	ownHost + "..", "." + ownHost, "shop..example.org", "x." + ownHost, ownHost + ".example.org", "shop.example.org@evil.example", ownHost + ":80:80", ownHost + "%00",
	"shop\xe3\x80\x82example.org", "\xc5\xbfhop.example.org", "shop.example.or\xef\xbd\x87", "xn--hop-7ha.example.org", "shop.example.org,evil.example", "shop%2eexample.org",
	"shop_example.org", "[" + ownHost + "]", "*.example.org", "example.org",
}

// toHonest looks at a call to the honest function.
func toHonest(w *platform, g *callwire.Call, _ http.Header) {
	if g.RequestURI != "/own?a" {
		w.Errorf("the function sees %s", g.RequestURI)
	}
}

var hostAttacks = []attack{
	{"F113", fmt.Sprintf("%d hosts of no function", len(nobodys)), atTheEdge, func(w *platform) {
		for _, host := range nobodys {
			refuses("GET "+attackPath+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 400, 404)(w)
		}
	}},
	{"F113", fmt.Sprintf("%d hosts that look like a function's", len(alike)), atTheEdge, func(w *platform) {
		for _, host := range alike {
			refuses("GET /attack HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 400, 404)(w)
		}
	}},
	{"F113", "a function's host that only a header of proxies names", atTheEdge, refuses(request("GET /attack",
		"X-Forwarded-Host: "+honestHost, "Forwarded: host="+honestHost, "X-Host: "+honestHost, "X-Original-Host: "+honestHost, "", ""), 404)},
	{"F113", "two hosts", noHTTP + "{code=400}", refuses(request("GET /attack", "Host: "+honestHost, "", ""), 400)},
	{"F113", "another host in the whole address", atTheEdge, func(w *platform) {
		refuses("GET http://nobody--shop."+hostsDomain+attackPath+" HTTP/1.1\r\nHost: "+honestHost+"\r\n\r\n", 404)(w)
		refuses("GET http://other.example/attack HTTP/1.1\r\nHost: "+honestHost+"\r\n\r\n", 404)(w)
	}},
	{"F113", "HTTP/2 with two hosts", atTheEdge, func(w *platform) {
		for _, at := range [][3]string{
			{"nobody--shop." + hostsDomain, honestHost, attackPath}, {"other.example", honestHost, "/attack"},
			{honestHost, "other.example", "/attack"}, {"h", honestHost, attackPath}, {honestHost, honestHost + ":80", "/attack"},
		} {
			h := w.newFrames(w.dial(w.calls))
			h.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", at[0], ":path", at[2], "host", at[1])
			if said := h.outcome(); said != "reset" && !strings.HasPrefix(said, "4") {
				w.Errorf("%s beside %s: %s", at[0], at[1], said)
			}
		}
	}},
	{"F113", "Windlass's own path of a function's host", atTheEdge + "{reason=UnknownPath}", func(w *platform) {
		for _, path := range []string{"/.well-known/windlass", "/.well-known/windlass/", "/.well-known/windlass/attack?a=b"} {
			refuses("GET "+path+" HTTP/1.1\r\nHost: "+honestHost+"\r\n\r\n", 404)(w)
		}
	}},
	{"F113", "hosts that another function has, or that are Windlass's", "", func(w *platform) {
		for _, host := range []string{ownHost, strings.ToUpper(ownHost), ownHost + ".", ownHost + ":8443", ownHost + ".:80", honestHost} {
			sees("GET /own?a HTTP/1.1\r\nHost: "+host+"\r\n\r\n", toHonest)(w)
			sees("GET http://"+host+"/own?a HTTP/1.1\r\nHost: "+deniedHost+"\r\n\r\n", toHonest)(w)
		}
		for _, host := range []string{gatewayHost, hostsDomain, deniedHost} {
			sees("GET /function/honest.shop/own?a HTTP/1.1\r\nHost: "+host+"\r\n\r\n", toHonest)(w)
		}
	}},
	{"F113", "hosts that are Windlass's, whose pages a function wants", atTheEdge + "{reason=UnknownPath}", func(w *platform) {
		for _, host := range []string{gatewayHost, hostsDomain} {
			refuses("GET /attack HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 404)(w)
		}
	}},
	{"F113", "a host that its namespace may not have", atTheEdge + "{reason=HostNotPermitted}",
		refuses("GET /attack HTTP/1.1\r\nHost: "+deniedHost+"\r\n\r\n", 404)},
	{"F113", fmt.Sprintf("%d hosts that look like one of a function's own", len(alikeOwn)), atTheEdge, func(w *platform) {
		for _, host := range alikeOwn {
			refuses("GET /attack HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 400, 404)(w)
		}
	}},
	{"F113", "another function by its path on a function's host", "", sees("GET /function/evil.shop/ HTTP/1.1\r\nHost: "+honestHost+":8443\r\n\r\n",
		func(w *platform, g *callwire.Call, _ http.Header) {
			if g.RequestURI != "/function/evil.shop/" {
				w.Errorf("the function sees %s", g.RequestURI)
			}
		})},
	{"F113", "an answer that reaches beyond its function's path", "", answersWith(func(w *platform, r response) {
		for _, name := range []string{"Service-Worker-Allowed", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Nel", "Report-To", "Reporting-Endpoints"} {
			if r.header.Get(name) != "" {
				w.Errorf("answered with %s: %s", name, r.header.Get(name))
			}
		}
		for _, cookie := range r.header["Set-Cookie"] {
			if !strings.HasSuffix(cookie, "; Path=/function/evil.shop") || strings.Contains(strings.ToLower(cookie), "domain") {
				w.Errorf("answered with the cookie %q", cookie)
			}
		}
		if len(r.header["Set-Cookie"]) != 5 {
			w.Errorf("answered with %v", r.header)
		}
	}, whole(200, nil,
		callwire.Field{Name: "service-worker-allowed", Value: "/"},
		callwire.Field{Name: "CLEAR-SITE-DATA", Value: `"*"`},
		callwire.Field{Name: "Strict-Transport-Security", Value: "max-age=0; includeSubDomains"},
		callwire.Field{Name: "Alt-Svc", Value: `h3="evil.example:443"`},
		callwire.Field{Name: "NEL", Value: `{"report_to":"e"}`},
		callwire.Field{Name: "Report-To", Value: `{"group":"e"}`},
		callwire.Field{Name: "Reporting-Endpoints", Value: `e="https://evil.example"`},
		callwire.Field{Name: "Set-Cookie", Value: "session=evil"},
		callwire.Field{Name: "set-cookie", Value: "session=evil; Path=/"},
		callwire.Field{Name: "Set-Cookie", Value: "session=evil; path=/function; PATH=/function/honest.shop; Path=/"},
		callwire.Field{Name: "Set-Cookie", Value: "session=evil;Domain=example.com;domain=.example.com"},
		callwire.Field{Name: "Set-Cookie", Value: "session=evil;\tPath\t=\t/;"}))},
}

package attacks

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// strange are paths that name no function.
var strange = []string{
	"/", "/function", "/function/", "/function//", "//function/honest.shop/attack", "/./function/honest.shop/attack",
	"/function/../function/honest.shop/attack", "/function/./honest.shop/attack", "/function/%2e%2e/honest.shop/attack",
	"/function/%2E%2E%2Fhonest.shop/attack", "/function/..%2f..%2fhonest.shop/attack", "/function/..%5c..%5chonest.shop/attack",
	"/function/honest%2eshop/attack", "/function/honest%2Eshop/attack\"", "/function/honest%2eshop/attack|", "/function/honest.sho%70/attack<",
	"/function/honest%252eshop/attack", "/function/%68onest.shop/attack", "/function/honest.%73hop/attack",
	"/function/honest%00.shop/attack", "/function/honest.shop%00/attack", "/function/honest%0a.shop/attack", "/function/honest%0d%0aX-A:%20b.shop/attack",
	"/function/honest.shop%0d%0aX-A:%20b/attack", "/function/honest%20.shop/attack", "/function/HONEST.shop/attack", "/function/honest.SHOP/attack",
	"/function/honest.shop./attack", "/function/.honest.shop/attack", "/function/honest..shop/attack", "/function/honest./attack", "/function/.shop/attack",
	"/function/./attack", "/function/../attack", "/function/.../attack", "/function/honest.shop;x=y/attack", "/function/honest;.shop/attack",
	"/function/*.shop/attack", "/function/honest.*/attack", "/function/honest.shop.*/>/attack", "/function/a.b.>/honest/attack", "/function/hon*.shop/attack",
	"/function/honest%E2%80%AE.shop/attack", "/function/%EF%BD%88onest.shop/attack", "/function/h%C2%ADonest.shop/attack",
	"/function/honest%EF%BC%8Eshop/attack", "/function/honest\xe3\x80\x82shop/attack", "/function/h\xc2\xadonest.shop/attack",
	"/function/" + strings.Repeat("a", 4_000) + ".shop", "/function/" + marker + "." + marker, "/function/honest\\shop/attack", "/%66unction/honest.shop/attack",
	// What named a function in its namespace once, and does for others.
	"/function/shop/honest/attack", "/function/shop.honest/attack", "/function/shop%2fhonest/attack", "/function/honest@shop/attack", "/function/honest:shop/attack",
	"/Function/honest.shop/attack", "/functions/honest.shop/attack", "/windlass.agent.v1alpha1.Gateway/Attempt", "/windlass.agent.v1alpha1.Instances/Pull",
	"/async-function/honest.shop/attack", "/calls/" + marker, "/v1/functions", "/2015-03-31/functions/honest.shop/invocations", "/.well-known/windlass/",
	"/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/vars", "/internal/honest", "/fission-function/shop/honest", "/system/functions", "/api/v1/namespaces",
}

var names = []attack{
	{"F88", fmt.Sprintf("%d names of no function", len(strange)), atTheEdge, func(w *platform) {
		before := w.counter(atTheEdge)
		for _, path := range strange {
			r := w.raw("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
			if r.status != 404 && r.status != 400 || r.header.Get("Windlass-Executed") != "no" || len(r.body) > 16<<10 {
				w.Errorf("%q: answered %d with %d bytes, %v", path, r.status, len(r.body), r.header)
			}
		}
		if told := w.counter(atTheEdge) + w.counter(noHTTP) - before; int(told) != len(strange) {
			w.Errorf("%v of %d were counted", told, len(strange))
		}
	}},
	{"F88", "a path that is no text", atTheEdge, refuses(request("GET "+attackPath+"?caf\xe9", "", ""), 400)},
	{"F88", "paths that are none", noHTTP, func(w *platform) {
		for _, path := range []string{"function/honest.shop/attack", "", "/function/honest.shop/attack%", "/function/honest.shop/attack%zz", "/function/shop/honest/att ack"} {
			refuses("GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n", 400)(w)
		}
	}},
	{"F97", "what is internal, by the host and by the whole address", atTheEdge, func(w *platform) {
		refuses("GET http://"+w.scheduler+"/metrics HTTP/1.1\r\nHost: h\r\n\r\n", 404)(w)
		refuses("GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", 404)(w)
	}},
	{"F100", "2,000 random names, methods and headers", atTheEdge, func(w *platform) {
		for range 2_000 {
			n := rand.Uint64()
			r := w.raw(fmt.Sprintf("M%x /function/f%x.n%x HTTP/1.1\r\nHost: h%x\r\nX-N%x: %x\r\nUser-Agent: %x\r\nConnection: close\r\n\r\n", n%997, n, n>>1, n, n, n, n))
			if r.status != 404 {
				w.Fatalf("answered %d %v", r.status, r.err)
			}
		}
	}},
}

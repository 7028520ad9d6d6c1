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
	"/", "/function", "/function/", "/function//", "//function/shop/honest/attack", "/./function/shop/honest/attack",
	"/function/../function/shop/honest/attack", "/function/./shop/honest/attack", "/function/%2e%2e/shop/honest/attack",
	"/function/%2E%2E%2Fshop/honest/attack", "/function/..%2f..%2fshop/honest/attack", "/function/..%5c..%5cshop/honest/attack",
	"/function/shop%2fhonest/attack", "/function/shop%2fhonest/attack\"", "/function/shop%2fhonest/attack|", "/function/sho%70/honest/attack<", "/function/shop%252fhonest/attack", "/function/%73hop/honest/attack", "/function/shop/%68onest/attack",
	"/function/shop/honest%00/attack", "/function/shop%00/honest/attack", "/function/shop/honest%0a/attack", "/function/shop/honest%0d%0aX-A:%20b/attack",
	"/function/shop/honest%20/attack", "/function/shop/HONEST/attack", "/function/SHOP/honest/attack", "/function/shop/honest./attack",
	"/function/shop./honest/attack", "/function/shop/honest;x=y/attack", "/function/shop;/honest/attack", "/function/shop/*/attack", "/function/*/honest/attack",
	"/function/shop.*/>/attack", "/function/a.b.>/honest/attack", "/function/shop/hon*/attack", "/function/shop/honest%E2%80%AE/attack",
	"/function/shop/%EF%BD%88onest/attack", "/function/shop/h%C2%ADonest/attack", "/function/%EF%BC%8E%EF%BC%8E/honest/attack", "/function/shop/\xc2\xadhonest/attack",
	"/function/shop/" + strings.Repeat("a", 4_000), "/function/" + marker + "/" + marker, "/function/shop\\honest/attack", "/%66unction/shop/honest/attack",
	"/Function/shop/honest/attack", "/functions/shop/honest/attack", "/windlass.agent.v1alpha1.Gateway/Attempt", "/windlass.agent.v1alpha1.Instances/Pull",
	"/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/vars", "/internal/honest", "/fission-function/shop/honest", "/system/functions", "/api/v1/namespaces",
}

var names = []attack{
	{"F88", fmt.Sprintf("%d names of no function", len(strange)), atTheEdge, func(w *world) {
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
	{"F88", "paths that are none", noHTTP, func(w *world) {
		for _, path := range []string{"function/shop/honest/attack", "", "/function/shop/honest/attack%", "/function/shop/honest/attack%zz", "/function/shop/honest/att ack"} {
			refuses("GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n", 400)(w)
		}
	}},
	{"F97", "what is internal, by the host and by the whole address", atTheEdge, func(w *world) {
		refuses("GET http://"+w.scheduler+"/metrics HTTP/1.1\r\nHost: h\r\n\r\n", 404)(w)
		refuses("GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", 404)(w)
	}},
	{"F100", "2,000 random names, methods and headers", atTheEdge, func(w *world) {
		for range 2_000 {
			n := rand.Uint64()
			r := w.raw(fmt.Sprintf("M%x /function/n%x/f%x HTTP/1.1\r\nHost: h%x\r\nX-N%x: %x\r\nUser-Agent: %x\r\nConnection: close\r\n\r\n", n%997, n, n>>1, n, n, n, n))
			if r.status != 404 {
				w.Fatalf("answered %d %v", r.status, r.err)
			}
		}
	}},
}

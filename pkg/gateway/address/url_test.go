package address_test

import (
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

func TestURLsOfFunctions(t *testing.T) {
	apart, long := hosts(t, address.DefaultTemplate), strings.Repeat("f", 60)
	for _, tt := range []struct {
		base           string
		hosts          address.Hosts
		name, tag      string
		function, next string
	}{
		{"http://gateway", address.Hosts{}, "hello", "next", "http://gateway/function/hello.team", ""},
		{"https://fn.example.com/call/", address.Hosts{}, "hello", "next", "https://fn.example.com/call/function/hello.team", ""},
		{"", address.Hosts{}, "hello", "next", "", ""},
		{"https://fn.example.com", apart, "hello", "next", "https://hello--team.fn.example.com", "https://next---hello--team.fn.example.com"},
		{"http://fn.example.com:8080/call", apart, "hello", "next", "http://hello--team.fn.example.com:8080", "http://next---hello--team.fn.example.com:8080"},
		{"", apart, "hello", "next", "https://hello--team.fn.example.com", "https://next---hello--team.fn.example.com"},
		{"https://fn.example.com", apart, long, "next", "https://fn.example.com/function/" + long + ".team", ""},
		{"", apart, long, "next", "", ""},
		{"https://fn.example.com", apart, "hello", "", "https://hello--team.fn.example.com", ""},
	} {
		u, err := address.NewURLs(tt.base, tt.hosts)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Function(named("team", tt.name)); got != tt.function {
			t.Errorf("%q: %s, want %s", tt.base, got, tt.function)
		}
		if got := u.Tag(named("team", tt.name), tt.tag); got != tt.next {
			t.Errorf("%q: the tag %q is at %q, want %q", tt.base, tt.tag, got, tt.next)
		}
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, base := range []string{"fn.example.com", "ftp://fn.example.com", "https://", "/function", "http://a b", ":"} {
		if _, err := address.NewURLs(base, address.Hosts{}); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
}

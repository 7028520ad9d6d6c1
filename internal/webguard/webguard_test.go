package webguard

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestS8WhoIsAnswered(t *testing.T) {
	const here = "127.0.0.1:8080"
	guard := Guard{Origins: []string{"http://localhost:3000", "https://me.tunnel.example"}}
	for name, c := range map[string]struct {
		host    string
		headers string // name=value, space between
		why     string // a part of it; empty if it is answered
	}{
		"a program":                   {here, "", ""},
		"by name":                     {"LocalHost:8080", "", ""},
		"version 6":                   {"[::1]:8080", "", ""},
		"without a port":              {"127.9.9.9", "", ""},
		"a name that was led here":    {"attacker.example:8080", "", "attacker.example"},
		"one that looks local":        {"127.0.0.1.attacker.example", "", "attacker.example"},
		"no name":                     {"", "", "localhost"},
		"typed into a browser":        {here, "Sec-Fetch-Site=none", ""},
		"its own page":                {here, "Sec-Fetch-Site=same-origin Origin=http://127.0.0.1:8080", ""},
		"a form of another site":      {here, "Sec-Fetch-Site=cross-site Origin=https://attacker.example", "attacker.example"},
		"a picture of another site":   {here, "Sec-Fetch-Site=cross-site", "cross-site"},
		"another port of the site":    {here, "Sec-Fetch-Site=same-site", "same-site"},
		"an old browser":              {here, "Origin=https://attacker.example", "attacker.example"},
		"a page without origin":       {here, "Origin=null", "null"},
		"a page that may":             {here, "Sec-Fetch-Site=cross-site Origin=http://localhost:3000", ""},
		"another port than it":        {here, "Origin=http://localhost:3001", "3001"},
		"through a tunnel that may":   {"me.tunnel.example", "Sec-Fetch-Site=same-origin Origin=https://me.tunnel.example", ""},
		"through a tunnel that might": {"you.tunnel.example", "", "you.tunnel.example"},
	} {
		r := httptest.NewRequest("POST", "/function/hello", nil)
		r.Host = c.host
		for _, header := range strings.Fields(c.headers) {
			key, value, _ := strings.Cut(header, "=")
			r.Header.Set(key, value)
		}
		why := guard.Refuses(r)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s is refused with %q, want %q", name, why, c.why)
		}
	}
}

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for addr, why := range map[string]string{
		"127.0.0.1:0": "", "localhost:8080": "", "[::1]:80": "", "127.0.0.1:http": "",
		"8080": "write host:port", "": "write host:port", "0.0.0.0:8080": "not a loopback", ":8080": "not a loopback", "example.com:80": "not a loopback",
	} {
		if err := CheckListen(addr); (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", addr, err, why)
		}
	}
}

func TestOriginsAreChecked(t *testing.T) {
	for origin, right := range map[string]bool{
		"http://localhost:3000": true, "https://example.com": true, "http://[::1]:3000": true,
		"": false, "*": false, "null": false, "localhost:3000": false, "example.com": false,
		"https://example.com/": false, "https://example.com/path": false, "ftp://example.com": false, "https://me@example.com": false,
	} {
		if err := (Guard{Origins: []string{origin}}).Validate(); (err == nil) != right {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

func TestOriginsAreThoseThatBrowsersSend(t *testing.T) {
	for origin, sent := range map[string]string{
		"http://localhost:80": "http://localhost", "https://example.com:443": "https://example.com", "http://localhost:": "http://localhost",
		"https://Example.COM": "https://example.com", "HTTP://localhost:3000": "http://localhost:3000", "http://[::1]:80": "http://[::1]",
		"https://example.com:80": "", "http://localhost:443": "", "http://[::1]": "",
	} {
		err := (Guard{Origins: []string{origin}}).Validate()
		if (err == nil) != (sent == "") || err != nil && !strings.HasSuffix(err.Error(), "; write "+sent) {
			t.Errorf("%q: %v, want %q", origin, err, sent)
		}
	}
}

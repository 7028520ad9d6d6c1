package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHttpdAnswers(t *testing.T) {
	t.Setenv("VERSION", "v7")
	t.Setenv("GREETING", "ahoy")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("contents"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	site := handler()
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/version", 200, "v7\n"},
		{"/a/path", 200, `"path":"/a/path"`},
		{"/", 200, `"greeting":"ahoy"`},
		{"/", 200, `"hostname":"` + host + `"`},
		{"/", 200, `"body":"hello"`},
		{"/sleep?ms=1", 200, "slept 1 ms"},
		{"/compute?ms=1", 200, "computed for 1 ms"},
		{"/compute?ms=-1", 400, `ms is "-1"`},
		{"/sleep?ms=x", 400, `ms is "x"`},
		{"/exit", 400, `code is ""`},
		{"/env?name=GREETING", 200, "ahoy\n"},
		{"/env?name=NOT_THERE", 404, "NOT_THERE is not set"},
		{"/env", 200, `"VERSION=v7"`},
		{"/alloc?mb=2", 200, "keeping 2 MiB"},
		{"/alloc?mb=1", 200, "keeping 3 MiB"},
		{"/alloc?mb=-1", 400, "at least 0"},
		{"/read?path=" + url.QueryEscape(file), 200, "contents"},
		{"/read?path=/no/such", 403, "no such file"},
	} {
		t.Run(c.path, func(t *testing.T) {
			answer := httptest.NewRecorder()
			site.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader("hello")))
			if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.says) {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Body, c.status, c.says)
			}
		})
	}
}

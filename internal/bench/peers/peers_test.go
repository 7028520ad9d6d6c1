package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

func TestTheFunctionAnswersWithAsManyBytesAsItIsAskedFor(t *testing.T) {
	server := httptest.NewServer(new(function))
	defer server.Close()
	for query, want := range map[string]int{"?answer=0": 0, "?answer=10": 10, "?answer=200000": 200_000} {
		answer, err := http.Post(server.URL+"/"+query, "", strings.NewReader(strings.Repeat("x", 100_000)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || len(body) != want || answer.ContentLength != int64(want) || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d, %d bytes, %v", query, answer.StatusCode, len(body), err)
		}
	}
	for _, query := range []string{"", "?answer=-1", "?answer=many"} {
		answer, err := http.Get(server.URL + "/" + query)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d", query, answer.StatusCode)
		}
	}
}

// It counts a call that it holds, however its client fares.
func TestTheFunctionCountsTheCallsThatItHolds(t *testing.T) {
	server := httptest.NewServer(new(function))
	defer server.Close()
	most := func(query string) string {
		answer, err := http.Get(server.URL + "/?answer=1" + query)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.Header.Get(loadgen.RunningHeader)
	}
	if alone, unasked := most("&hold=1"), most(""); alone != "1" || unasked != "" {
		t.Errorf("%q calls ran, and %q without being held", alone, unasked)
	}
	var calling sync.WaitGroup
	for range 5 {
		calling.Go(func() { most("&hold=200000") })
	}
	calling.Wait()
	if got := most("&hold=1"); got < "2" || got > "5" {
		t.Errorf("%q calls ran at a time", got)
	}
}

func TestProxiesPassCallsOn(t *testing.T) {
	server := httptest.NewServer(new(function))
	defer server.Close()
	target, _ := url.Parse(server.URL)
	for _, pooled := range []bool{false, true} {
		proxy := httptest.NewServer(newProxy(target, pooled))
		for range 3 {
			answer, err := http.Get(proxy.URL + "/?answer=100000")
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if n != 100_000 || err != nil {
				t.Errorf("pooled %v: %d bytes, %v", pooled, n, err)
			}
		}
		proxy.Close()
	}
}

// A call goes to the first process of its function that runs none, and never to another function's.
func TestABalancerUsesTheFirstIdleProcess(t *testing.T) {
	served := make(chan string, 10)
	going := make(chan bool)
	process := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served <- name
			if r.URL.RawQuery == "hold" {
				<-going
			}
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	routes, err := json.Marshal(Routes{"/a/": {process("a1"), process("a2")}, "/b/": {process("b1")}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newBalancer(string(routes))
	if err != nil {
		t.Fatal(err)
	}
	balancer := httptest.NewServer(handler)
	defer balancer.Close()
	call := func(path string) string {
		answer, err := http.Get(balancer.URL + path)
		if err != nil {
			t.Error(err)
			return ""
		}
		_ = answer.Body.Close()
		return answer.Status
	}
	var calling sync.WaitGroup
	calling.Go(func() { call("/a/?hold") })
	got := []string{<-served} // a1 is busy until the end
	for _, path := range []string{"/a/", "/a/", "/b/"} {
		call(path)
		got = append(got, <-served)
	}
	close(going)
	calling.Wait()
	call("/a/")
	if got = append(got, <-served); !slices.Equal(got, []string{"a1", "a2", "a2", "b1", "a1"}) {
		t.Errorf("calls went to %v", got)
	}
	if status := call("/c/"); !strings.HasPrefix(status, "404") {
		t.Errorf("a path of no function answered %q", status)
	}
	for _, bad := range []string{"", `{"/a/": [":"]}`} {
		if _, err := newBalancer(bad); err == nil {
			t.Errorf("%q are routes", bad)
		}
	}
}

func TestTheLoadFollowsOrders(t *testing.T) {
	server := httptest.NewServer(new(function))
	defer server.Close()
	drive := loadgen.Drive{URLs: []string{server.URL + "/?answer=1"}, Connections: 2, Span: time.Millisecond, Timeout: time.Minute}
	var orders, replies bytes.Buffer
	for _, order := range []Order{{}, {Drive: &drive}, {}, {}} {
		if err := json.NewEncoder(&orders).Encode(order); err != nil {
			t.Fatal(err)
		}
	}
	if err := Main(t.Context(), []string{LoadArgument}, &orders, &replies, os.Getenv); err != nil {
		t.Fatal(err)
	}
	read := json.NewDecoder(&replies)
	var got [4]Reply
	for i := range got {
		if err := read.Decode(&got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got[0].Err == "" || got[1].Err != "" || got[1].Driven != nil || got[3].Err == "" {
		t.Errorf("the replies are %+v", got)
	}
	if got[2].Driven == nil || got[2].Driven.Calls < 2 || got[2].Driven.Failed > 0 {
		t.Errorf("it drove %+v", got[2].Driven)
	}
}

// The bench reads the addresses, calls, and ends the programs by ending their input.
func TestProgramsRunUntilTheirInputEnds(t *testing.T) {
	start := func(args ...string) (ready Ready, end func()) {
		in, ends := io.Pipe()
		prints, out := io.Pipe()
		ended := make(chan error)
		go func() { ended <- Main(t.Context(), args, in, out, func(string) string { return "" }) }()
		if err := json.NewDecoder(prints).Decode(&ready); err != nil {
			t.Fatal(err)
		}
		return ready, func() {
			_ = ends.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	function, endFunction := start(FunctionArgument)
	defer endFunction()
	proxy, endProxy := start(PooledProxyArgument, function.URL)
	defer endProxy()
	for url, want := range map[string]string{
		function.URL + "/?answer=2": "\x00\x00", proxy.URL + "/?answer=3": "\x00\x00\x00", proxy.Ops + "/metrics": "go_memstats_mallocs_total ",
	} {
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), want) {
			t.Errorf("%s answers %q, %v", url, body, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestOtherArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"proxy"}, {"function", "x"}, {"gateway"}} {
		if err := Main(t.Context(), args, strings.NewReader(""), io.Discard, os.Getenv); err == nil || !strings.Contains(err.Error(), "windlass bench starts") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

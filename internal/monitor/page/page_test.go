package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// fakeSource is a Windlass with some functions, whose time stands until it is moved.
type fakeSource struct {
	now   time.Time
	names []string
	// waiting are the calls of the last one, which are all that it has.
	waiting float64
	asked   int
	trouble error
}

func (s *fakeSource) Sample(context.Context) (monitor.Sample, error) {
	s.asked++
	family := &dto.MetricFamily{Name: ptr("windlass_gateway_invocations_total")}
	for _, name := range s.names {
		family.Metric = append(family.Metric, &dto.Metric{
			Label: []*dto.LabelPair{{Name: ptr("function_namespace"), Value: ptr("default")}, {Name: ptr("function"), Value: ptr(name)}, {Name: ptr("code"), Value: ptr("200")}},
			// One call a second since long ago.
			Counter: &dto.Counter{Value: ptr(float64(s.now.Unix()))},
		})
	}
	families := []*dto.MetricFamily{family}
	if last := len(family.Metric) - 1; s.waiting > 0 {
		queue := &dto.Metric{Label: family.Metric[last].Label, Gauge: &dto.Gauge{Value: ptr(s.waiting)}}
		families = append(families, &dto.MetricFamily{Name: ptr("windlass_scheduler_queue_length"), Metric: []*dto.Metric{queue}})
		family.Metric = family.Metric[:last]
	}
	return monitor.Read(s.now, []monitor.Reading{{Source: "w", Families: families}}), s.trouble
}

func ptr[T any](v T) *T { return &v }

func open(names ...string) (*fakeSource, *Page) {
	s := &fakeSource{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), names: names}
	return s, New(Config{Version: "v1", GatewayURL: "http://127.0.0.1:8080"}, s, func() time.Time { return s.now })
}

func get(p *Page, path, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:8081"

func status(t *testing.T, p *Page) Status {
	t.Helper()
	w := get(p, "/status.json", here)
	var s Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v: %s", w.Code, err, w.Body)
	}
	return s
}

func TestOnlyNamesOfTheMachineAreAnswered(t *testing.T) {
	_, p := open("hello")
	for host, code := range map[string]int{
		"127.0.0.1:8081": 200, "localhost:8081": 200, "LocalHost": 200, "127.9.9.9": 200, "[::1]:8081": 200, "[::1]": 200, "::1": 200,
		"": 403, "evil.example:8081": 403, "evil.example": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:80": 403, "192.168.0.7:8081": 403,
		"0.0.0.0:8081": 403, "localhost:8081:8081": 403, "127.0.0.1:8081@evil.example": 403,
	} {
		for _, path := range []string{"/", "/status.json", "/page.js"} {
			if w := get(p, path, host); w.Code != code {
				t.Errorf("%s of %q is answered with %d, want %d", path, host, w.Code, code)
			}
		}
	}
}

func TestPagesOfOthersReadNothing(t *testing.T) {
	_, p := open("hello")
	for site, code := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		if w := get(p, "/status.json", here, "Sec-Fetch-Site", site); w.Code != code {
			t.Errorf("a request that is %s is answered with %d, want %d", site, w.Code, code)
		}
	}
	header := get(p, "/status.json", here, "Origin", "https://evil.example").Header()
	if header.Get("Access-Control-Allow-Origin") != "" || header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("others may read it: %v", header)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	_, p := open("hello")
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		for _, path := range []string{"/", "/status.json"} {
			r := httptest.NewRequest(method, path, strings.NewReader("{}"))
			r.Host = here
			w := httptest.NewRecorder()
			if p.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s is answered with %d", method, path, w.Code)
			}
		}
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	_, p := open()
	for path, kind := range map[string]string{"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript", "/icon.svg": "image/svg+xml"} {
		w := get(p, path, here)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s is answered with %d and is %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy of %s is %s", path, policy)
		}
		body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", " onclick=", " style="} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %s", path, bad)
			}
		}
	}
	for _, path := range []string{"/assets/page.js", "/index.html", "/page.go", "/../page.go"} {
		if w := get(p, path, here); w.Code == http.StatusOK {
			t.Errorf("%s is answered with %d", path, w.Code)
		}
	}
}

func TestTheStatusIsThatOfThePresent(t *testing.T) {
	s, p := open("hello")
	first := status(t, p)
	if first.Version != "v1" || first.GatewayURL == "" || len(first.Functions) != 1 || first.Functions[0].Name != "hello" || first.Over != 0 {
		t.Errorf("at first: %+v", first)
	}
	s.now = s.now.Add(2 * time.Second)
	if got := status(t, p); got.Totals.Rate != 1 || got.Over != 2 {
		t.Errorf("after 2 s: rate %g over %g s", got.Totals.Rate, got.Over)
	}
	s.now = s.now.Add(freshFor - 1)
	for range 5 {
		status(t, p)
	}
	if s.asked != 2 {
		t.Errorf("asked %d times, want 2: others look at the same", s.asked)
	}
	s.now = s.now.Add(forgetAfter + time.Second)
	if got := status(t, p); got.Over != 0 || len(got.Totals.Recent) != 0 {
		t.Errorf("after a long time: %+v", got.Totals)
	}
	s.now, s.trouble = s.now.Add(time.Second), errors.New("it stops")
	if w := get(p, "/status.json", here); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "it stops") {
		t.Errorf("answered with %d %s", w.Code, w.Body)
	}
}

func TestNotAllOfVeryManyFunctionsAreTold(t *testing.T) {
	var names []string
	for i := range maxFunctions + 7 {
		names = append(names, fmt.Sprintf("f%04d", i))
	}
	source, p := open(names...)
	source.waiting = 500
	status(t, p)
	source.now = source.now.Add(time.Second)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { get(p, "/status.json", here) })
	}
	all.Wait()
	s := status(t, p)
	if len(s.Functions) != maxFunctions || s.More != 7 || s.Totals.Functions != maxFunctions+7 {
		t.Errorf("%d functions and %d more of %d", len(s.Functions), s.More, s.Totals.Functions)
	}
	if first := s.Functions[0]; first.Queued != 500 || first.Rate != 0 || s.Functions[1].Rate != 1 {
		t.Errorf("the first function in the answer is %+v", first)
	}
}

func TestNamesAreNoHTML(t *testing.T) {
	_, p := open("<script>alert(1)</script>")
	if body := get(p, "/status.json", here).Body.String(); strings.Contains(body, "<script>") {
		t.Errorf("a name is told as it is: %s", body)
	}
}

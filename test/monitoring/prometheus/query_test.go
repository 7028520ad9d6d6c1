package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answering is a server that gives this answer to each question.
func answering(t *testing.T, status int, body string) *Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return &Server{url: server.URL}
}

func data(text string) string { return `{"status":"success","data":` + text + `}` }

func TestAnswersOfEachTypeAreUnderstood(t *testing.T) {
	labels := map[string]string{"a": "b"}
	for name, tt := range map[string]struct {
		answer string
		want   []Series
	}{
		"nothing": {`{"resultType":"vector","result":[]}`, nil},
		"vector":  {`{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1.5,"2"]}]}`, []Series{{labels, []Point{2}}}},
		"scalar":  {`{"resultType":"scalar","result":[1.5,"3"]}`, []Series{{nil, []Point{3}}}},
		"matrix": {
			`{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2"],[2,"4.5"]]},{"metric":{},"values":[[1,"0"]]}]}`,
			[]Series{{labels, []Point{2, 4.5}}, {map[string]string{}, []Point{0}}},
		},
		"native histograms": {
			`{"resultType":"matrix","result":[{"metric":{"a":"b"},"histograms":[[1,{"count":"2"}],[2,{"count":"3"}]]}]}`,
			[]Series{{labels, []Point{1, 1}}},
		},
		"a native histogram": {`{"resultType":"vector","result":[{"metric":{"a":"b"},"histogram":[1,{"count":"2"}]}]}`, []Series{{labels, []Point{1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, http.StatusOK, data(tt.answer)).Range(context.Background(), "x", time.Unix(1, 0), time.Unix(2, 0), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	s := answering(t, http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`)
	if _, err := s.Query(context.Background(), "sum("); err == nil || !strings.Contains(err.Error(), "unexpected end") {
		t.Errorf("the error is %v", err)
	}
}

func TestOnlyAlertsThatFireAreReturned(t *testing.T) {
	s := answering(t, http.StatusOK, data(`{"alerts":[
		{"labels":{"alertname":"A"},"annotations":{"summary":"a"},"state":"firing"},
		{"labels":{"alertname":"B"},"state":"pending"}]}`))
	got, err := s.Firing(context.Background())
	want := []Alert{{Labels: map[string]string{"alertname": "A"}, Annotations: map[string]string{"summary": "a"}, State: "firing"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRulesThatCannotBeEvaluatedAreReturned(t *testing.T) {
	s := answering(t, http.StatusOK, data(`{"groups":[{"rules":[
		{"name":"good","health":"ok"},{"name":"bad","health":"err","lastError":"many-to-many"},{"name":"new","health":"unknown"}]}]}`))
	got, err := s.Broken(context.Background())
	if diff := cmp.Diff(map[string]string{"bad": "many-to-many"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestExemplarsAreReturnedWithTheirLabels(t *testing.T) {
	s := answering(t, http.StatusOK, data(`[{"seriesLabels":{},"exemplars":[{"labels":{"trace_id":"1"},"value":"2","timestamp":3}]},{"exemplars":[]}]`))
	got, err := s.Exemplars(context.Background(), "x", time.Unix(1, 0), time.Unix(2, 0))
	if diff := cmp.Diff([]map[string]string{{"trace_id": "1"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Series is one series of an answer.
type Series struct {
	Labels map[string]string `json:"metric"`
	// Points are the values at moments, oldest first; one, if only one moment was
	// asked for.
	Points []Point
}

// Point is a value, which may be NaN.
type Point float64

// Range asks for the values of an expression from one moment to another.
func (s *Server) Range(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	return s.query(ctx, "query_range", url.Values{
		"query": {expr}, "start": {moment(from)}, "end": {moment(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// Query asks for the values of an expression now.
func (s *Server) Query(ctx context.Context, expr string) ([]Series, error) {
	return s.query(ctx, "query", url.Values{"query": {expr}})
}

func moment(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// query understands answers that are vectors, matrices or scalars.
func (s *Server) query(ctx context.Context, what string, form url.Values) ([]Series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := s.ask(ctx, what, form, &data); err != nil {
		return nil, err
	}
	if data.ResultType == "scalar" {
		var value pair
		err := json.Unmarshal(data.Result, &value)
		return []Series{{Points: []Point{Point(value)}}}, err
	}
	var raw []struct {
		Metric     map[string]string
		Value      *pair
		Values     []pair
		Histogram  json.RawMessage
		Histograms []json.RawMessage
	}
	if err := json.Unmarshal(data.Result, &raw); err != nil {
		return nil, err
	}
	var all []Series
	for _, r := range raw {
		series := Series{Labels: r.Metric}
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		for _, v := range r.Values {
			series.Points = append(series.Points, Point(v))
		}
		// A native histogram has no single value; that it is there counts as 1.
		for range len(r.Histograms) + min(1, len(r.Histogram)) {
			series.Points = append(series.Points, 1)
		}
		all = append(all, series)
	}
	return all, nil
}

// pair is a value as the API writes it: [seconds, "value"].
type pair float64

// UnmarshalJSON implements json.Unmarshaler.
func (p *pair) UnmarshalJSON(text []byte) error {
	var both [2]any
	if err := json.Unmarshal(text, &both); err != nil {
		return err
	}
	value, ok := both[1].(string)
	if !ok {
		return fmt.Errorf("%s is no value", text)
	}
	n, err := strconv.ParseFloat(value, 64)
	*p = pair(n)
	return err
}

// Alert is an alert that is pending or firing.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
}

// Firing returns the alerts that fire now.
func (s *Server) Firing(ctx context.Context) ([]Alert, error) {
	var data struct{ Alerts []Alert }
	if err := s.ask(ctx, "alerts", nil, &data); err != nil {
		return nil, err
	}
	var firing []Alert
	for _, a := range data.Alerts {
		if a.State == "firing" {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// Broken returns what rules complained of when they were evaluated last, by the
// rule's name.
func (s *Server) Broken(ctx context.Context) (map[string]string, error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := s.ask(ctx, "rules", nil, &data); err != nil {
		return nil, err
	}
	broken := make(map[string]string)
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.Health == "err" {
				broken[rule.Name] = rule.LastError
			}
		}
	}
	return broken, nil
}

// ask calls the server's API and decodes the data of its answer.
func (s *Server) ask(ctx context.Context, what string, form url.Values, data any) error {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/api/v1/"+what, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	if envelope.Status != "success" {
		return fmt.Errorf("prometheus: %s", envelope.Error)
	}
	return json.Unmarshal(envelope.Data, data)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/local"
)

// stream is calls to one function, whose rate goes up and down.
type stream struct {
	namespace, function string
	// takes is how long one call keeps a processor busy, in milliseconds.
	takes int
	// Calls in a second: at least low, at most high, once in every period. A pulse is
	// high for a tenth of it and low for the rest.
	low, high float64
	period    time.Duration
	pulse     bool
}

// streams are loads of kinds that decisions tell apart: steady, tidal, and in bursts.
var streams = []stream{
	{namespace: "shop", function: "cart", takes: 3, low: 20, high: 20, period: time.Minute},
	{namespace: "shop", function: "checkout", takes: 25, low: 1, high: 14, period: 80 * time.Second},
	{namespace: "shop", function: "thumbnails", takes: 120, low: 0, high: 14, period: 50 * time.Second, pulse: true},
	{namespace: "reports", function: "daily", takes: 400, low: 0, high: 4, period: 70 * time.Second, pulse: true},
	{namespace: "reports", function: "mail", takes: 10, low: 0, high: 6, period: 45 * time.Second},
}

// rate is how many calls a second are due, after so long.
func (s stream) rate(after time.Duration) float64 {
	phase := math.Mod(after.Seconds(), s.period.Seconds()) / s.period.Seconds()
	if s.pulse {
		if phase >= 0.4 && phase < 0.5 {
			return s.high
		}
		return s.low
	}
	return s.low + (s.high-s.low)*(1-math.Cos(2*math.Pi*phase))/2
}

// Instances leave soon, so that some minutes show them come and go.
var leaving = v1alpha1.Scaling{
	BackoffAfter: metav1.Duration{Duration: 3 * time.Second},
	IdleTimeout:  metav1.Duration{Duration: 9 * time.Second},
	KeepLast:     metav1.Duration{Duration: 18 * time.Second},
}

// manifest makes a function of the example that computes as long as it is told.
func (s stream) manifest(examples string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name = s.namespace, s.function
	fn.Spec.Command = []string{filepath.Join(filepath.Dir(examples), "bin", "examples", "fib")}
	fn.Spec.Code = &v1alpha1.Code{Path: filepath.Join(examples, "fib")}
	fn.Spec.Scaling = leaving
	v1alpha1.Default(fn)
	return fn
}

// most bounds the calls of a stream that are in flight; further ones are left out.
const most = 60

// call calls until the time is over, and waits for the answers.
func (s stream) call(ctx context.Context, gateway string, during time.Duration) {
	const step = 50 * time.Millisecond
	url := fmt.Sprintf("%s/function/%s/%s?ms=%d", gateway, s.namespace, s.function, s.takes)
	slots := make(chan struct{}, most)
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(step)
	defer tick.Stop()
	began, due := time.Now(), 0.0
	for time.Since(began) < during {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due += s.rate(time.Since(began)) * step.Seconds(); due >= 1; due-- {
			select {
			case slots <- struct{}{}:
				calls.Go(func() { get(ctx, url); <-slots })
			default:
			}
		}
	}
}

// get makes one call. What becomes of it is for the dashboards to show.
func get(ctx context.Context, url string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}

// load runs a Windlass in a folder and calls its functions. Watch gets the URL of its
// metrics before that.
func load(ctx context.Context, dir, agent string, during time.Duration, watch func(opsURL string) error) (err error) {
	config := local.DefaultConfig()
	config.DataDir, config.AgentPath = dir, agent
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	w, err := local.Open(config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case <-w.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := watch(w.OpsURL()); err != nil {
		return err
	}
	examples, err := filepath.Abs("examples")
	if err != nil {
		return err
	}
	for _, s := range streams {
		if _, err := w.Store().Apply(s.manifest(examples)); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stdout, "calling %d functions for %v\n", len(streams), during)
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() { s.call(ctx, w.GatewayURL(), during) })
	}
	all.Wait()
	return ctx.Err()
}

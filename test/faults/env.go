package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// faultEnv is where one row plays.
type faultEnv struct {
	*lab.Lab
	slots
	rng *rand.Rand
	row string
	// prefix begins the names of the calls, and is that of no other row, nor of this one if it runs again.
	prefix string
	rate   float64
	// calls are those of the row so far, and recovery those that came after it.
	calls, recovery []verdict.Call
	// notes are what the row measured, to be printed.
	notes  []string
	loads  int
	broken []string
	// forbidden are calls that nobody may run from a moment on, by nonce.
	forbidden map[string]int64
	// unread are the executions since the last verdict.
	unread func() ([]verdict.Run, error)
	// before is an owner that was asked for while etcd could answer.
	before *lab.Member
	// epochs saw every owner that a slot was given.
	epochs *epochWatch
	// epochsFall is set where etcd loses its memory, and epochs with it.
	epochsFall bool
}

// Functions that are always there.
const (
	// work runs every call at most once.
	work = "work"
	// again may run a call twice.
	again = "again"
)

// functionTimeout is that of the lab's functions.
const functionTimeout = 10 * time.Second

// warm is how many instances the standing functions keep, and atMost how many they may
// have.
const (
	warm   = 4
	atMost = 2 * warm
)

// settings are those of the standing functions.
func settings(spec *v1alpha1.FunctionSpec) {
	spec.Template.Timeout.Duration = functionTimeout
	spec.Template.StartupTimeout.Duration = 20 * time.Second
	spec.Scaling.MinInstances, spec.Scaling.MaxInstances = warm, new(int32(atMost))
}

// note keeps a measurement of the row.
func (s *faultEnv) note(format string, arguments ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, arguments...))
}

// holds holds something against Windlass that no call shows.
func (s *faultEnv) holds(so bool, format string, arguments ...any) {
	if !so {
		s.broken = append(s.broken, fmt.Sprintf(format, arguments...))
	}
}

// shows holds it against the lab if the fault did not come about.
func (s *faultEnv) shows(so bool, format string, arguments ...any) {
	s.holds(so, format+", so that this shows nothing", arguments...)
}

// forbid notes that no execution of a call may begin from a moment on.
func (s *faultEnv) forbid(nonce string, from int64) {
	if s.forbidden == nil {
		s.forbidden = make(map[string]int64)
	}
	s.forbidden[nonce] = from
}

// podsWithin holds more pods than a function may have against Windlass.
func (s *faultEnv) podsWithin(peak, most int) {
	s.holds(peak <= most, "%d pods ran at once, and %d may", peak, most)
}

// toWork calls the function work, for 20 ms each.
func toWork(rng *rand.Rand) request {
	return request{Function: "faults/" + work, Query: "ms=20", Body: rng.IntN(2048)}
}

// toAgain calls the function that may run twice.
func toAgain(rng *rand.Rand) request {
	return request{Function: "faults/" + again, Query: "ms=20", Body: rng.IntN(2048), Repeatable: true}
}

// mebibyte is the size of a body that gateways and agents pass on without keeping it.
const mebibyte = 1 << 20

// large sends and gets a MiB with each call of a load.
func large(next func(*rand.Rand) request) func(*rand.Rand) request {
	return func(rng *rand.Rand) request {
		r := next(rng)
		r.Body, r.Answer = mebibyte, mebibyte
		return r
	}
}

// streamed uploads a MiB piece by piece with each call of a load.
func streamed(next func(*rand.Rand) request) func(*rand.Rand) request {
	return func(rng *rand.Rand) request {
		r := next(rng)
		r.Body, r.Streamed = mebibyte, true
		return r
	}
}

// slowly makes each call of a load take longer.
func slowly(next func(*rand.Rand) request, query string) func(*rand.Rand) request {
	return func(rng *rand.Rand) request {
		r := next(rng)
		r.Query = query
		return r
	}
}

// config is a load of the row's rate.
func (s *faultEnv) config(next func(*rand.Rand) request) loadConfig {
	s.loads++
	return loadConfig{
		Targets: s.Targets(), Rate: s.rate, Next: next, Patience: testTimeout + 5*time.Second,
		Name: fmt.Sprintf("%s.%d", s.prefix, s.loads), Seed: s.rng.Uint64(),
	}
}

// Times around a fault.
const (
	before = time.Second
	after  = 2 * time.Second
)

// under puts a fault upon Windlass while it works, and returns when every call
// has ended. The fault's function takes it back.
func (s *faultEnv) under(ctx context.Context, next func(*rand.Rand) request, fault func() error) error {
	_, err := s.underLoad(ctx, s.config(next), fault)
	return err
}

// underLoad is under with a load of one's own, whose calls it returns.
func (s *faultEnv) underLoad(ctx context.Context, config loadConfig, fault func() error) ([]verdict.Call, error) {
	l := startLoad(ctx, config)
	sleep.For(ctx, before)
	began := now()
	err := fault()
	ended := now()
	sleep.For(ctx, after)
	calls := l.Stop()
	s.calls = append(s.calls, calls...)
	s.note("stall=%v", verdict.Stall(calls, began, ended+int64(after)).Round(time.Millisecond))
	return calls, err
}

// call makes some calls one after the other at any gateway.
func (s *faultEnv) call(ctx context.Context, n int, r request) []verdict.Call {
	config := s.config(func(*rand.Rand) request { return r })
	calls := callSome(ctx, config, n)
	s.calls = append(s.calls, calls...)
	return calls
}

// with creates a function for one row, calls f, and deletes the function.
func (s *faultEnv) with(ctx context.Context, name string, edit func(*v1alpha1.FunctionSpec), f func(fn *v1alpha1.Function) error) error {
	fn, err := s.Cluster.Function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
		settings(spec)
		spec.Scaling.MinInstances, spec.Scaling.MaxInstances = 0, new(int32(4))
		edit(spec)
	})
	if err != nil {
		return err
	}
	err = s.known(ctx, lab.Namespace+"/"+name)
	if err == nil {
		err = f(fn)
	}
	return errors.Join(err, s.Cluster.Delete(context.WithoutCancel(ctx), name))
}

// known returns when every gateway knows a function, and where its calls go.
func (s *faultEnv) known(ctx context.Context, function string) error {
	for _, gateway := range s.Gateways {
		err := sleep.Until(ctx, 10*time.Millisecond, func() (bool, error) { return s.routes(ctx, gateway, function) })
		if err != nil {
			return err
		}
	}
	return nil
}

// routes tells whether a gateway knows where calls of a function go. It asks for a tag
// that the function has not, so that the function is not called.
func (s *faultEnv) routes(ctx context.Context, gateway *lab.Member, function string) (bool, error) {
	conn, err := s.dial(ctx, gateway)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: lab\r\n%s: no-such-tag\r\n\r\n", path(function), invocation.HeaderTag)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	var problem struct{ Reason string }
	err = json.NewDecoder(answer.Body).Decode(&problem)
	return problem.Reason == problems.UnknownTag, err
}

// withOwner calls f with the owner of the function work.
func (s *faultEnv) withOwner(ctx context.Context, f func(owner *lab.Member) error) func() error {
	return func() error {
		owner, err := s.owner(ctx, work)
		if err != nil {
			return err
		}
		return f(owner)
	}
}

// others are the schedulers that are not this one.
func (s *faultEnv) others(not *lab.Member) []*lab.Member {
	var others []*lab.Member
	for _, m := range s.Schedulers {
		if m != not {
			others = append(others, m)
		}
	}
	return others
}

// anyOf is one of them at random.
func anyOf[T any](s *faultEnv, all []T) T { return all[s.rng.IntN(len(all))] }

// spaces are the networks of members.
func spaces(members []*lab.Member) []*lab.Space {
	var all []*lab.Space
	for _, m := range members {
		all = append(all, m.Space)
	}
	return all
}

package lambda

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// spareHarness runs a test with a spare instance in a bubble.
func spareHarness(t *testing.T, f func(s *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newHarnessOf(t, NewSpare(0))
		defer func() { s.end() }()
		f(s)
	})
}

func assignment() adapter.Assignment {
	return adapter.Assignment{
		Namespace: "shop", Function: "hello", Concurrency: 2,
		Variables: []adapter.Variable{{Name: "_HANDLER", Value: "app.handler"}},
		Files:     []adapter.File{{Path: "app.py", Content: []byte("x = 1\n")}},
	}
}

const assignmentText = `{"variables":[{"name":"_HANDLER","value":"app.handler"}],"files":[{"path":"app.py","content":"eCA9IDEK"}]}`

// ask asks for the assignment in the background.
func (s *harness) ask(ctx context.Context) <-chan reply {
	came := make(chan reply, 1)
	go func() {
		got, err := s.do(ctx, http.MethodGet, assignmentPath, nil, nil)
		if err != nil {
			got.body = err.Error()
		}
		came <- got
	}()
	synctest.Wait()
	return came
}

func (s *harness) assign(to adapter.Assignment) {
	s.Helper()
	if err := s.a.Assign(to); err != nil {
		s.Fatal(err)
	}
}

func (s *harness) waitRuntime() {
	s.Helper()
	if err := s.a.WaitRuntime(context.Background()); err != nil {
		s.Fatal(err)
	}
}

func TestAnAssignmentIsFetchedOnce(t *testing.T) {
	spareHarness(t, func(s *harness) {
		first := s.ask(context.Background())
		s.waitRuntime()
		s.want(<-s.ask(context.Background()), http.StatusGone, "Gone") // another one waits
		s.assign(assignment())
		s.want(<-first, http.StatusOK, assignmentText)
		s.want(<-s.ask(context.Background()), http.StatusGone, "Gone")
		if err := s.a.Assign(assignment()); !errors.Is(err, errAssigned) {
			t.Errorf("assigned twice: %v", err)
		}
	})
}

func TestAnAssignedInstanceIsLikeAnyOther(t *testing.T) {
	spareHarness(t, func(s *harness) {
		asked := s.ask(context.Background())
		s.assign(assignment())
		<-asked
		p, q := s.invoke("a", "{}"), s.invoke("b", "{}") // its concurrency is 2
		for range 2 {
			event := s.next()
			if arn := event.header.Get("Lambda-Runtime-Invoked-Function-Arn"); !strings.HasSuffix(arn, ":shop-hello") {
				t.Errorf("the function is %q", arn)
			}
			s.post(event.header.Get("Lambda-Runtime-Aws-Request-Id"), "response", "1")
		}
		s.wantAnswer(p, 200, "1")
		s.wantAnswer(q, 200, "1")
		if err := s.a.WaitReady(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAssignmentThatNobodyReadIsTheNextOnes(t *testing.T) {
	spareHarness(t, func(s *harness) {
		ctx, hangUp := context.WithCancel(context.Background())
		left := s.ask(ctx)
		hangUp()
		<-left
		synctest.Wait()
		s.waitRuntime()
		s.assign(assignment())
		s.want(<-s.ask(context.Background()), http.StatusOK, assignmentText)
		s.want(<-s.ask(context.Background()), http.StatusGone, "Gone")
	})
}

func TestARuntimeThatDoesNotKnowSpareInstancesHasFailed(t *testing.T) {
	spareHarness(t, func(s *harness) {
		got, err := s.do(context.Background(), http.MethodGet, base+"/invocation/next", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.want(got, http.StatusForbidden, "InvalidStateTransition")
		if err := s.a.WaitRuntime(context.Background()); !errors.Is(err, errTooEarly) {
			t.Errorf("WaitRuntime: %v", err)
		}
		if err := s.a.Assign(assignment()); !errors.Is(err, errTooEarly) {
			t.Errorf("Assign: %v", err)
		}
	})
	spareHarness(t, func(s *harness) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.a.WaitRuntime(ctx); !errors.Is(err, errNeverWaited) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitRuntime: %v", err)
		}
	})
}

func TestARuntimeThatCannotLoadTheFunctionSaysSo(t *testing.T) {
	for _, assigned := range []bool{false, true} {
		spareHarness(t, func(s *harness) {
			wait := s.a.WaitRuntime
			if assigned {
				asked := s.ask(context.Background())
				s.assign(assignment())
				<-asked
				wait = s.a.WaitReady
			}
			got, err := s.do(context.Background(), http.MethodPost, base+"/init/error", nil, strings.NewReader(`{"errorMessage":"no app","errorType":"X"}`))
			if err != nil {
				t.Fatal(err)
			}
			s.want(got, http.StatusAccepted, "OK")
			if err := wait(context.Background()); err == nil || !strings.Contains(err.Error(), "X: no app") {
				t.Errorf("assigned %v: %v", assigned, err)
			}
		})
	}
}

func TestAssignmentsThatAreNoneAreNotHandedOver(t *testing.T) {
	spareHarness(t, func(s *harness) {
		bad := assignment()
		bad.Files[0].Path = "../app.py"
		if err := s.a.Assign(bad); err == nil || !strings.Contains(err.Error(), "../app.py") {
			t.Errorf("assigned: %v", err)
		}
	})
	inBubble(t, 1, func(s *harness) {
		s.want(<-s.ask(context.Background()), http.StatusGone, "Gone")
		if err := s.a.Assign(assignment()); !errors.Is(err, errAssigned) {
			t.Errorf("a function's instance was assigned: %v", err)
		}
	})
}

func TestAnAssignmentIsNeverWithTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newAssignmentBox()
		var waiting <-chan []byte
		assigned, fetched := false, 0
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				inbox, no := d.fetch()
				if (no == nil) != (waiting == nil && fetched == 0) {
					t.Fatalf("refused: %v, one waits: %v, fetched: %d", no, waiting != nil, fetched)
				}
				if no == nil {
					waiting = inbox
				}
			},
			"leave": func(t *rapid.T) {
				if waiting == nil {
					t.Skip("nobody waits")
				}
				d.cancelFetch(waiting)
				waiting = nil
			},
			"assign": func(t *rapid.T) {
				if err := d.assign([]byte("it")); (err == nil) == assigned {
					t.Fatalf("assign: %v, assigned before: %v", err, assigned)
				}
				assigned = true
			},
			"fetch": func(t *rapid.T) {
				if waiting == nil {
					t.Skip("nobody waits")
				}
				select {
				case <-waiting:
					waiting = nil
					fetched++
				default:
					if assigned {
						t.Fatal("one waits for what is there")
					}
				}
			},
		})
		if fetched > 1 {
			t.Fatalf("fetched %d times", fetched)
		}
	})
}

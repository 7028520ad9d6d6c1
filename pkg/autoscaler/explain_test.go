package autoscaler

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var wordsParams = Params{Tick: 100 * time.Millisecond, StaleAfter: 100 * time.Millisecond}

func TestExplainSaysWhatWasDecidedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		s    Snapshot
		d    Decision
		want string
	}{
		"all that can be said": {
			s: Snapshot{Arrived: 112, Departed: 100, Stale: 4, OldestWait: 1234 * time.Millisecond, Created: 2, Busy: 2, Creating: 2,
				Lost: 1, Room: 3, MeanExecution: 50 * time.Millisecond, MeanStart: 480 * time.Millisecond, Concurrency: 4, Failing: true},
			d: Decision{Create: 3, Why: ReasonOverload, Required: 7, Rate: 40.2, Horizon: 500 * time.Millisecond},
			want: "more calls come than all instances can run; 2 instances, 2 busy, 2 starting (a start takes 480 ms), 1 lost, " +
				"12 waiting (4 for more than 100 ms, the first for 1.2 s); 40 calls/s × 50 ms, 4 at a time, need 7 instances within 500 ms; " +
				"room for 3 more; the last start failed",
		},
		"the first call": {
			s: Snapshot{Arrived: 1, Room: -1}, d: Decision{Create: 1, Why: ReasonFirst},
			want: "first call; 0 instances, 1 waiting",
		},
		"nothing to do": {
			s: Snapshot{Arrived: 9, Departed: 9, Created: 3, Room: -1}, d: Decision{Why: ReasonNoDemand},
			want: "3 instances, 0 busy, 0 waiting",
		},
		"a decider that plans for no time, with an unknown duration": {
			s: Snapshot{Arrived: 9, Created: 1, Busy: 1, Room: -1}, d: Decision{Create: 1, Why: ReasonCongestion, Required: 9},
			want: "more calls wait than came since the last tick; 1 instance, 1 busy, 9 waiting; calls of unknown duration need 9 instances",
		},
		"a rate alone, and no room": {
			s: Snapshot{Arrived: 1, Room: 0}, d: Decision{Create: 1, Why: ReasonFirst, Rate: 0.01},
			want: "first call; 0 instances, 1 waiting; under 0.1 calls/s of unknown duration; room for 0 more",
		},
		"room that is no bound is not spoken of": {
			s: Snapshot{Arrived: 1, Room: 400}, d: Decision{Create: 1, Why: ReasonFirst, Required: 1},
			want: "first call; 0 instances, 1 waiting; calls of unknown duration need 1 instance",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Explain(tc.s, tc.d, wordsParams); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEveryReasonHasWords(t *testing.T) {
	reasons := reasonsInSource(t)
	if len(reasons) < 9 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	for _, why := range reasons {
		if words, known := meanings[why]; !known || words == "" && why != ReasonNoDemand && why != ReasonEnough {
			t.Errorf("%s has no words: give it some in meanings", why)
		}
	}
	if len(meanings) != len(reasons) {
		t.Errorf("%d reasons have words, and there are %d: remove those of reasons that are gone", len(meanings), len(reasons))
	}
}

// reasonsInSource are the constants of type Reason.
func reasonsInSource(t *testing.T) []Reason {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []Reason
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Reason" || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, Reason(text))
			}
			return true
		})
	}
	return reasons
}

func TestExplanationsAreOneLineForAnySnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		s.Room = rapid.IntRange(-1, 5).Draw(t, "room")
		d := Bound(FPCSch(s, params), s, Limits{})
		text := Explain(s, d, wordsParams)
		if text == "" || strings.Contains(text, "\n") || strings.Contains(text, "; ;") || strings.HasPrefix(text, ";") {
			t.Fatalf("got %q", text)
		}
	})
}

func TestHumanTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                             "0 µs",
		400 * time.Microsecond:        "400 µs",
		5234 * time.Microsecond:       "5.2 ms",
		50 * time.Millisecond:         "50 ms",
		9_970 * time.Microsecond:      "10 ms",
		1500 * time.Millisecond:       "1.5 s",
		12*time.Second + 1:            "12 s",
		3 * time.Minute:               "3 min",
		100*time.Minute + time.Second: "100 min",
		999_600 * time.Microsecond:    "1 s",
		2 * time.Second:               "2 s",
	} {
		if got := HumanTime(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

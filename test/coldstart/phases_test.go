package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func whole() marks {
	return marks{
		sent: at(0), decided: at(3), created: at(10), sandbox: at(200), agent: at(300), function: at(450),
		joined: at(340), ready: at(500), granted: at(505), answered: at(560), execution: 50 * time.Millisecond,
	}
}

func TestPhasesAreThePartsOfAColdStart(t *testing.T) {
	list, err := whole().phases()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"decide": 3, "api_create": 7, "bind": 0, "sandbox": 190, "containers": 250, "ready": 50,
		"claim": 5, "execution": 50, "return": 5, "agent_hello": 40,
	}
	for _, s := range list {
		if ms, expected := want[s.name]; !expected || !s.known || s.took != time.Duration(ms)*time.Millisecond {
			t.Errorf("%s took %v (known: %v), want %d ms", s.name, s.took, s.known, ms)
		}
		delete(want, s.name)
	}
	if len(want) > 0 {
		t.Errorf("phases %v are missing", want)
	}
}

func TestWhatWasNotObservedIsNotKnown(t *testing.T) {
	m := whole()
	m.ready, m.execution = time.Time{}, -1
	list, err := m.phases()
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string]bool{"ready": true, "claim": true, "execution": true, "return": true}
	for _, s := range list {
		if s.known == unknown[s.name] {
			t.Errorf("%s is known: %v", s.name, s.known)
		}
	}
	if _, known := sum(list); known {
		t.Error("the sum of an unknown phase is known")
	}
}

func TestClocksThatDisagreeAreFound(t *testing.T) {
	m := whole()
	m.decided = at(-50)
	if _, err := m.phases(); err == nil {
		t.Error("a decision before its request is believed")
	}
	m.decided = at(-10)
	if _, err := m.phases(); err != nil {
		t.Errorf("a difference below the resolution is not believed: %v", err)
	}
}

func TestPhasesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := 0
		next := func(name string) time.Time {
			ms += rapid.IntRange(0, 1000).Draw(t, name)
			return at(ms)
		}
		m := marks{sent: next("sent"), decided: next("decided"), created: next("created"), sandbox: next("sandbox")}
		m.agent, m.function = next("agent"), next("function")
		if rapid.Bool().Draw(t, "agent last") {
			m.agent, m.function = m.function, m.agent
		}
		m.joined, m.ready, m.granted = next("joined"), next("ready"), next("granted")
		m.execution = time.Duration(rapid.IntRange(0, 1000).Draw(t, "execution")) * time.Millisecond
		ms += int(m.execution.Milliseconds())
		m.answered = next("answered")
		list, err := m.phases()
		if err != nil {
			t.Fatal(err)
		}
		if total, known := sum(list); !known || total != m.total() {
			t.Fatalf("the phases add up to %v (known: %v), and the whole took %v", total, known, m.total())
		}
	})
}

func TestQuantile(t *testing.T) {
	var ten []time.Duration
	for i := 10; i > 0; i-- {
		ten = append(ten, time.Duration(i))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 5, 0.9: 9, 1: 10} {
		if got := quantile(ten, share); got != want {
			t.Errorf("the %v quantile of 1 to 10 is %d, want %d", share, got, want)
		}
	}
	if got := quantile([]time.Duration{7}, 0.5); got != 7 {
		t.Errorf("the median of 7 is %d", got)
	}
}

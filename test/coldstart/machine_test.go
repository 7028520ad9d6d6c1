package main

import (
	"os"
	"testing"
	"time"
)

func TestStatWithANameThatLooksLikeTheRest(t *testing.T) {
	p, err := parseStat("4259 (a) S 1 (b)) S 4146 4259 4259 0 -1 4194560 2368 0 0 0 0 4 0 0 20 0 6 0 331234 1300176896 3154 18446744073709551615")
	if err != nil {
		t.Fatal(err)
	}
	if p.pid != 4259 || p.parent != 4146 || p.ticks != 331234 {
		t.Errorf("read %+v", p)
	}
	boot := time.Unix(1000, 0)
	if got, want := p.startedAt(boot), time.Unix(1000+3312, 340e6); !got.Equal(want) {
		t.Errorf("it started at %v, want %v", got, want)
	}
	for _, line := range []string{"", "1 name S 2", "1 (name) S 2 3", "x (n) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"} {
		if _, err := parseStat(line); err == nil {
			t.Errorf("%q is taken for a process", line)
		}
	}
}

func TestFirstProcessOfItsNamespace(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tpause\nNSpid:\t4259\t70\t1\n": true,
		"Name:\tsh\nNSpid:\t4260\t71\t7\n":    false,
		"Name:\tinit\nNSpid:\t1\n":            false,
		"Name:\told\n":                        false,
	} {
		if got := isFirst(status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

func TestThisProcessIsFoundWithItsStart(t *testing.T) {
	all, err := processes()
	if err != nil {
		t.Skipf("there is no /proc here: %v", err)
	}
	boot, err := bootTime()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.pid == os.Getpid() {
			if since := time.Since(p.startedAt(boot)); since < -coarse || since > time.Hour {
				t.Errorf("this process started %v ago", since)
			}
			return
		}
	}
	t.Error("this process was not found")
}

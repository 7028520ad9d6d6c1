package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what go test -json says, without what nobody reads.
const said = `not in JSON
{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Output":"-test.shuffle 1\n"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"    a_test.go:1: a secret\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"--- PASS: TestGood (0.00s)\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"b","Test":"TestBad/one","Output":"    b_test.go:1: wrong\n"}
{"Action":"output","Package":"a","Test":"TestLame","Output":"=== RUN   TestLame\n"}
{"Action":"output","Package":"a","Test":"TestLame","Output":"    a_test.go:2: python3 is not installed\n"}
{"Action":"output","Package":"a","Test":"TestLame","Output":"--- SKIP: TestLame (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestLame"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}
{"Action":"output","Package":"b","Test":"TestFine","Output":"    b_test.go:2: fine\n"}
{"Action":"pass","Package":"b","Test":"TestFine"}
{"Action":"fail","Package":"b","Test":"TestBad/one"}
{"Action":"output","Package":"b","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"output","Package":"b","Output":"FAIL\n"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t0.1s\n"}
{"Action":"fail","Package":"b"}
{"Action":"output","Package":"c","Output":"?   \tc\t[no test files]\n"}
{"Action":"skip","Package":"c"}
{"ImportPath":"d","Action":"build-output","Output":"d.go:1: undefined: x\n"}
{"Action":"output","Package":"e","Test":"TestHangs","Output":"panic: test timed out\n"}
`

func TestFailuresAndReasonsAreSaid(t *testing.T) {
	const want = `not in JSON
ok  	a	0.1s
    b_test.go:1: wrong
--- FAIL: TestBad (0.00s)
FAIL
FAIL	b	0.1s
?   	c	[no test files]
d.go:1: undefined: x
panic: test timed out

Skipped on this machine:
  python3 is not installed
    a TestLame
`
	var out strings.Builder
	if err := summarize(strings.NewReader(said), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsSaidOfSkippedTestsWhereThereAreNone(t *testing.T) {
	var out strings.Builder
	if err := summarize(strings.NewReader(`{"Action":"pass","Package":"a"}`), &out); err != nil || out.Len() > 0 {
		t.Errorf("it says %q, %v", &out, err)
	}
}

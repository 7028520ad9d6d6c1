package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
)

// An answer may have failed before its client has seen the head. The client sees it still:
// clients make a call again whose connection ends without one.
func TestTheHeadOfABrokenAnswerReachesTheClient(t *testing.T) {
	for range 50 {
		g, c := claimedByEnded(t, core.Spec{})
		w := httptest.NewRecorder()
		c.client.w, c.client.rc = w, http.NewResponseController(w)
		a := c.currentAttempt()
		a.runBy = time.Now().Add(time.Minute)
		a.answer = callwire.NewInflow(nil, 1)
		if _, err := c.beginAnswer(a, &callwire.Head{Status: 299, ContentLength: -1}); err != nil {
			t.Fatal(err)
		}
		g.shell.step(c, func(v *core.Invocation) core.Decision { return v.Fail(a.number) }, problem{})
		g.wait(c)
		if w.Code != 299 || !c.answerBroken() {
			t.Fatalf("answered %d, broken %t", w.Code, c.answerBroken())
		}
	}
}

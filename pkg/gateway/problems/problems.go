package problems

import (
	"net/http"
	"strings"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Type is a kind of problem. Types are only added; none changes its meaning.
type Type struct {
	// Reason names it, in answers and metrics.
	Reason string
	// Status is that of its answers.
	Status int
	// Title is a short sentence for people, the same in every answer.
	Title string
	// When says when it is answered, and Do what to do about it. Both are Markdown.
	When, Do string
}

// base is what the URI of every type begins with. It names the type, also where nothing
// can be fetched.
const base = "https://windlass.dev/problems/"

// URI identifies the type: the member type of an answer.
func (t Type) URI() string { return base + t.Anchor() }

// Anchor is the reason in small letters with hyphens, such as no-capacity.
func (t Type) Anchor() string {
	var b strings.Builder
	for i := range len(t.Reason) {
		c := t.Reason[i]
		if upper(c) && i > 0 && (!upper(t.Reason[i-1]) || i+1 < len(t.Reason) && lower(t.Reason[i+1])) {
			b.WriteByte('-')
		}
		b.WriteByte(c)
	}
	return strings.ToLower(b.String())
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }
func lower(c byte) bool { return 'a' <= c && c <= 'z' }

// Executed says whether the function ran: ExecutedNo or ExecutedMaybe.
func (t Type) Executed() invocation.Executed {
	if t.Status == http.StatusBadGateway || t.Status == http.StatusGatewayTimeout {
		return invocation.ExecutedMaybe
	}
	return invocation.ExecutedNo
}

// Retry reports whether the answer says when to try again.
func (t Type) Retry() bool {
	return t.Status == http.StatusTooManyRequests || t.Status == http.StatusServiceUnavailable
}

// All are all types, by status.
func All() []Type { return types }

// Of is the type of a reason.
func Of(reason string) (t Type, known bool) {
	for _, t := range types {
		if t.Reason == reason {
			return t, true
		}
	}
	return Type{}, false
}

// Settled is the type for an answer to a call that may have run, although the error lies only
// in its beginning, or in something that did not come.
func (t Type) Settled(executed invocation.Executed) Type {
	if executed != invocation.ExecutedMaybe || t.Executed() == invocation.ExecutedMaybe {
		return t
	}
	reason := OutcomeUnknown
	switch t.Reason {
	case BodyTooLarge, BodyTooSlow, BodyNotReadable:
		reason = RequestCut
	}
	settled, _ := Of(reason)
	return settled
}

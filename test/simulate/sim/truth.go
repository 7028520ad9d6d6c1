package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// answer is what a client was told.
type answer int

const (
	unanswered answer = iota
	answeredOK
	answeredNo
	answeredMaybe
	// clientLeft, before there was an answer.
	clientLeft
	// gatewayDied, and with it the connection to the client.
	gatewayDied
)

// callRecord is the truth about one call, which no program of the simulation can
// see.
type callRecord struct {
	number int
	id     invocation.ID
	fn     *unit
	answer answer
	// token is that of the ticket that counts now; used tells that it was
	// claimed with.
	token invocation.Token
	used  bool
	// shown is who was handed which ticket.
	shown []showing
	// grants are the claims that were granted, the attempts 1, 2, ...
	grants []grant
	// confused says that a void ticket was offered behind a later one, which can
	// come by way of another scheduler. A queue cannot tell which one is void.
	confused bool
	// alone says that it found a credit while there was no scheduler, and unlucky that its
	// function, its instance or its connection has failed it since.
	alone, unlucky bool
	// disturbances is how many there were when it was handed over.
	disturbances int
	starts       int
	// letIn says that a scheduler has admitted it.
	letIn bool
	// wantedCore is until when its ticket may have waited at an instance for a core of the node.
	wantedCore time.Duration
}

type showing struct {
	token invocation.Token
	cid   invocation.CID
	fn    *unit
}

type grant struct {
	cid invocation.CID
	// released says that the function has seen nothing of it.
	released bool
}

// execution is one run of a function.
type execution struct {
	callRecord *callRecord
	attempt    int
	finished   bool
}

// truth knows all invocations and executions, and says which promise is broken.
type truth struct {
	world *World
	calls []*callRecord
	byID  map[invocation.ID]*callRecord
	runs  []execution
	// epochs is which scheduler holds a slot in an epoch of a history of etcd.
	epochs map[tenure]*node
}

type tenure struct {
	history int
	fn      int
	epoch   uint64
}

func newTruth(w *World) *truth {
	return &truth{world: w, byID: make(map[invocation.ID]*callRecord), epochs: make(map[tenure]*node)}
}

// admit enters a call that a gateway has taken.
func (l *truth) admit(id invocation.ID, fn *unit, token invocation.Token) *callRecord {
	in := &callRecord{number: len(l.calls) + 1, id: id, fn: fn, token: token}
	l.calls = append(l.calls, in)
	l.byID[id] = in
	l.world.counts.Invocations++
	return in
}

// show notes that an instance of a unit was handed a ticket.
func (l *truth) show(id invocation.ID, token invocation.Token, cid invocation.CID, fn *unit) {
	if in := l.byID[id]; in != nil {
		in.shown = append(in.shown, showing{token, cid, fn})
	}
}

// offered notes that a ticket comes to a queue.
func (l *truth) offered(m offer) {
	if in := l.byID[m.id]; in != nil && in.token != m.token {
		in.confused = true
	}
}

// grant notes that a claim with a token was granted.
func (l *truth) grant(in *callRecord, attempt int, token invocation.Token, cid invocation.CID) {
	switch {
	case token != in.token:
		l.broken(in, RuleTokenOfTicket)
	case in.used:
		l.broken(in, RuleTokenOnce)
	case !in.wasShown(token, cid):
		l.broken(in, RuleHolderClaims)
	case attempt != len(in.grants)+1:
		l.broken(in, RuleAttemptsCounted)
	case in.tries() > core.MaxAttempts && in.fn.idempotent:
		l.broken(in, RuleThreeAttempts)
	}
	in.used = true
	in.grants = append(in.grants, grant{cid: cid})
}

// grantByLoan notes that a call was handed to an instance that has lent a pull.
func (l *truth) grantByLoan(in *callRecord, attempt int, to *agentConn) {
	switch {
	case to.ended || to.in.fn != in.fn:
		l.broken(in, RuleLenderIsCalled)
	case attempt != len(in.grants)+1:
		l.broken(in, RuleAttemptsCounted)
	case in.tries() > core.MaxAttempts && in.fn.idempotent:
		l.broken(in, RuleThreeAttempts)
	}
	in.used = true
	in.grants = append(in.grants, grant{cid: to.cid})
	l.world.counts.ByLoan++
}

// tries is how often the call will have been granted with the next grant, without those that were
// released.
func (in *callRecord) tries() int {
	n := 1
	for _, g := range in.grants {
		if !g.released {
			n++
		}
	}
	return n
}

func (in *callRecord) wasShown(token invocation.Token, cid invocation.CID) bool {
	for _, s := range in.shown {
		if s.token == token && s.cid == cid && s.fn == in.fn {
			return true
		}
	}
	return false
}

// renew notes that the call waits again, under a new token.
func (l *truth) renew(in *callRecord, attempt int, token invocation.Token, released bool) {
	in.token, in.used = token, false
	in.grants[attempt-1].released = released
}

// moved notes that the call waits for another revision, under a new token.
func (l *truth) moved(in *callRecord, to *unit, token invocation.Token) {
	in.fn, in.token, in.used = to, token, false
}

// start notes that an instance starts a call, and returns the name of the
// execution.
func (l *truth) start(in *callRecord, attempt int, cid invocation.CID) int {
	in.starts++
	l.world.counts.Executions++
	l.world.note("truth", "start", uint64(in.number), uint64(attempt))
	switch {
	case in.answer == answeredNo:
		l.broken(in, RuleNoStaysTrue)
	case in.starts > 1 && !in.fn.idempotent:
		l.broken(in, RuleStartsOnce)
	case attempt < 1 || attempt > len(in.grants) || in.grants[attempt-1].cid != cid:
		l.broken(in, RuleOwnAttempt)
	case in.grants[attempt-1].released:
		l.broken(in, RuleReleasedNotRun)
	}
	l.runs = append(l.runs, execution{callRecord: in, attempt: attempt})
	return len(l.runs)
}

// finish notes the good end of an execution.
func (l *truth) finish(run int) { l.runs[run-1].finished = true }

// answered notes what a client is told. Run is the execution that the answer
// comes from.
func (l *truth) answered(in *callRecord, a answer, run int) {
	l.world.note("truth", answerNames[a], uint64(in.number), uint64(run))
	if in.answer != unanswered {
		l.broken(in, RuleAnsweredOnce)
		return
	}
	in.answer = a
	l.answeredAlone(in, a)
	counts := &l.world.counts
	switch a {
	case answeredOK:
		counts.OK++
		if run == 0 || l.runs[run-1].callRecord != in || !l.runs[run-1].finished {
			l.broken(in, RuleOKIsTrue)
		}
	case answeredNo:
		counts.No++
		if in.starts > 0 {
			l.broken(in, RuleNoIsTrue)
		}
	case answeredMaybe:
		counts.Maybe++
		if !slices.ContainsFunc(in.grants, func(g grant) bool { return !g.released }) {
			l.broken(in, RuleMaybeHasReason)
		}
	case unanswered, clientLeft, gatewayDied:
		counts.Abandoned++
	}
}

// answeredAlone looks at what came of a call that found a credit while no scheduler was there.
func (l *truth) answeredAlone(in *callRecord, a answer) {
	switch {
	case !in.alone:
	case a == answeredOK:
		l.world.counts.Alone++
	case (a == answeredNo || a == answeredMaybe) && !in.unlucky && in.disturbances == l.world.disturbances:
		l.broken(in, RuleServedAlone)
	}
}

var answerNames = [...]string{"unanswered", "ok", "no", "maybe", "client left", "gateway died"}

// wanted notes that an instance is handed a call: nobody may be handed one that
// nobody waits for.
func (l *truth) wanted(in *callRecord) {
	if in.answer != unanswered {
		l.broken(in, RuleUnwantedNotRun)
	}
}

// hold notes that a scheduler holds the slot of a function in an epoch.
func (l *truth) hold(n *node, fn *function, history int, epoch uint64) {
	key := tenure{history, fn.index, epoch}
	holder, known := l.epochs[key]
	if known && holder != n {
		l.world.violate(RuleOneHolder, 0)
	}
	l.epochs[key] = n
}

func (l *truth) broken(in *callRecord, rule Rule) { l.world.violate(rule, in.number) }

// overdue is how much later than its deadline a call may be answered.
const overdue = time.Second

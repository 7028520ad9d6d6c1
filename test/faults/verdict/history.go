package verdict

import (
	"github.com/anishathalye/porcupine"
)

// claimStep is one thing that is seen of an invocation's claim register: an
// instance that runs it, or an answer to its caller.
type claimStep struct {
	// cid is the instance that runs it, or empty for an answer.
	cid string
	// answer is what the caller was told; Yes stands for a success too.
	answer Executed
}

// claimState is the register: who runs the call, and whether its caller was told
// that nobody did.
type claimState struct {
	cid    string
	closed bool
}

// claims is what a register of claims allows: one instance at most, none after
// "no", and "yes" only after one.
var claims = porcupine.Model{
	Init: func() any { return claimState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, step := state.(claimState), input.(claimStep)
		switch {
		case step.cid != "":
			return s.cid == "" && !s.closed, claimState{cid: step.cid}
		case step.answer == No:
			return s.cid == "", claimState{closed: true}
		case step.answer == Yes:
			return s.cid != "", s
		}
		return true, s
	},
}

// illegalClaims counts the calls whose executions and answer fit no history.
func illegalClaims(calls []Call, runs map[string][]Run) int {
	illegal := 0
	for i := range calls {
		c := &calls[i]
		if c.Repeatable || len(runs[c.Nonce]) == 0 && c.Executed != Yes && !c.Succeeded() {
			continue
		}
		if !porcupine.CheckOperations(claims, claimHistory(c, runs[c.Nonce])) {
			illegal++
		}
	}
	return illegal
}

// claimHistory is what is known of when things happened: a claim after the call
// began and before the function did, and an answer before the caller had it.
func claimHistory(c *Call, runs []Run) []porcupine.Operation {
	var history []porcupine.Operation
	for i, run := range runs {
		history = append(history, porcupine.Operation{
			ClientId: i + 1, Input: claimStep{cid: run.CID}, Call: c.Began, Return: max(run.Began, c.Began),
		})
	}
	answer := c.Executed
	if c.Succeeded() {
		answer = Yes
	}
	if c.Outcome == Answered && answer != Maybe {
		history = append(history, porcupine.Operation{Input: claimStep{answer: answer}, Call: c.Began, Return: c.Ended})
	}
	return history
}

// Epoch is that an observer knew of a slot at a moment.
type Epoch struct {
	Observer string
	Slot     int
	Epoch    uint64
	At       int64
}

// epochs is a register that never falls.
var epochs = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, input, _ any) (bool, any) {
		return input.(uint64) >= state.(uint64), input
	},
}

// IllegalEpochs counts the slots of which some observer went back to an earlier
// epoch. What each observer saw comes in the order of its time.
func IllegalEpochs(seen []Epoch) int {
	type view struct {
		observer string
		slot     int
	}
	histories := make(map[view][]porcupine.Operation)
	for i, e := range seen {
		at := view{e.Observer, e.Slot}
		history := histories[at]
		if n := len(history); n > 0 && history[n-1].Input == e.Epoch {
			continue
		}
		// An observation is a moment; the index keeps the order of equal ones.
		moment := e.At<<8 + int64(i&0xff)
		histories[at] = append(history, porcupine.Operation{Input: e.Epoch, Call: moment, Return: moment})
	}
	illegal := 0
	for _, history := range histories {
		if !porcupine.CheckOperations(epochs, history) {
			illegal++
		}
	}
	return illegal
}

// Package verdict decides whether Windlass kept its promises in a run of the fault lab. It compares
// the callers' answers with the executions in the run log.
//
// It reads no file, no clock and no network. Whatever the fault was, these are violations:
//
//   - a call that was executed twice although its function does not allow that;
//   - an answer "executed: no" for a call that was executed;
//   - a success for a call that was not executed, or with another call's answer, or with a
//     truncated answer;
//   - an error that does not say whether the function ran;
//   - a call that was not answered in time;
//   - an order of claims and answers, or of epochs, that no history allows in which each
//     happens at one moment (checked with porcupine).
//
// Other permitted effects depend on the fault; a row of the lab lists them as an Allowance.
package verdict

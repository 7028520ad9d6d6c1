// Package verdict says whether Windlass kept its promises in a run of the fault
// lab. It compares what callers were told with what the run log says was executed.
//
// It decides only: it reads no file, no clock and no network. What it holds
// against Windlass, whatever the fault was:
//
//   - a call that was executed twice although its function does not allow that;
//   - an answer "executed: no" of a call that was executed;
//   - a success of a call that was not executed, or with another call's answer,
//     or with an answer that is not whole;
//   - an error that does not say whether the function ran;
//   - a call that was not answered in time;
//   - an order of claims and answers, or of epochs, that no history allows in
//     which each happens at one moment (checked with porcupine).
//
// What else may happen depends on the fault, and a row of the lab says so with an
// Allowance.
package verdict

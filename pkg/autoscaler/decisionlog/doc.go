// Package decisionlog keeps the last decisions on functions, and says in words what
// they were, why, and what became of them.
//
// A Book is a value that its user locks. It keeps a decision if it changed something, if
// its reason is another one than before, or if something else became of it; what merely
// repeats the last one is counted. It promises to hold no more than Bounds say, of one
// function and of all: functions that were decided on longest ago lose theirs first, so
// that a function that is idle costs nothing in the end.
//
// An Account, or for many functions a Latest, is what is told of it to whoever asks: plain JSON, with the words in it,
// since a command of another version would not know all reasons.
package decisionlog

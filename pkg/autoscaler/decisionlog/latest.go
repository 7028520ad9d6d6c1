package decisionlog

import "time"

// Latest is what a scheduler tells of its last decisions on all functions.
type Latest struct {
	// Scheduler names who tells, and is empty if there is only one.
	Scheduler string `json:"scheduler,omitempty"`
	// Functions are those that it decided on lately, the last one first, each with its
	// last decision.
	Functions []Account `json:"functions"`
	// Broken are those that cannot run, since they have no instance and their last one
	// did not start, in the order of their names; as many as Functions at most.
	Broken []Broken `json:"broken,omitempty"`
	// More is how many there are of which nothing is told, since they are too many.
	More int `json:"more,omitempty"`
}

// Broken is a revision of a function that cannot run, and why, in one word, which is a
// condition reason of the Function.
type Broken struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  string `json:"revision,omitempty"`
	Reason    string `json:"reason"`
}

// Recent are the functions that were decided on at that time or later, at most n, the
// last one first, and how many more there are.
func (b *Book) Recent(since time.Time, n int) (uids []string, more int) {
	for at := b.recent.Front(); at != nil; at = at.Next() {
		c := at.Value.(*chapter)
		if c.entries[len(c.entries)-1].Until.Before(since) {
			break
		}
		if len(uids) < n {
			uids = append(uids, c.uid)
		} else {
			more++
		}
	}
	return uids, more
}

package coordinator

// RelistAfter is the comparison that lists all keys. Only that shows that a restored store has other keys
// than before if it has reached the last known revision again, and the last write is the same.
const RelistAfter = 8

// LastWrite is how a key was written last. Two histories of a store may write a key at the same revision.
type LastWrite struct {
	Key      string
	Revision int64
	Lease    Lease
	Value    string
}

// Comparison is what a follower of the store knows of all keys, including those that it ignores, to
// compare it with the store from time to time. A watch does not show that the store was wiped or
// restored: it waits in silence for a revision that is far away. The zero value knows nothing. It
// is not safe for concurrent use.
type Comparison struct {
	known map[string]LastWrite
	// seen is the highest known revision of the store.
	seen int64
	// compared counts the comparisons since the last listing.
	compared int
}

// Saw records a revision that was read. Reads are linearizable: it returns true if the store was at
// a later revision before, so that it has another history now, and following must begin again.
func (c *Comparison) Saw(revision int64) (rewound bool) {
	rewound = revision < c.seen
	c.seen = max(c.seen, revision)
	return rewound
}

// Listed replaces the known keys.
func (c *Comparison) Listed(all []LastWrite) {
	c.known, c.compared = make(map[string]LastWrite, len(all)), 0
	for _, w := range all {
		c.known[w.Key] = w
	}
}

// Changed records a write.
func (c *Comparison) Changed(w LastWrite) { c.known[w.Key] = w }

// Deleted records that a key is gone.
func (c *Comparison) Deleted(key string) { delete(c.known, key) }

// Lists counts a comparison, and reports whether it has to list all keys.
func (c *Comparison) Lists() bool {
	c.compared++
	return c.compared >= RelistAfter
}

// Same reports whether the store has as many keys as are known, and a known last write.
func (c *Comparison) Same(keys int, last ...LastWrite) bool {
	for _, w := range last {
		if c.known[w.Key] != w {
			return false
		}
	}
	return keys == len(c.known)
}

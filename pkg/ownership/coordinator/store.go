package coordinator

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrCompacted is returned by Since for a revision that was compacted.
var ErrCompacted = errors.New("keeping: the revision was compacted")

// Store is a store of leased keys in memory, with the rules of etcd. It reads no
// clock: leases end when End or Expire says so. It is not safe for concurrent
// use.
type Store struct {
	revision  int64
	compacted int64
	keys      map[Key]Entry
	leases    map[Lease]*leaseState
	lastLease Lease
	history   []Entry
	writes    int
}

// leaseState is the lifetime of a lease.
type leaseState struct {
	ttl  time.Duration
	ends time.Time
}

// NewStore makes an empty Store. Like etcd's, its first revision is 1.
func NewStore() *Store {
	return &Store{revision: 1, keys: make(map[Key]Entry), leases: make(map[Lease]*leaseState)}
}

// Restore replaces the content by that of another Store, such as a backup or an empty one. As
// in etcd, no lease gets the name of an earlier one.
func (s *Store) Restore(from *Store) {
	last := max(s.lastLease, from.lastLease)
	*s = *from.Clone()
	s.lastLease = last
}

// Clone returns a copy, such as for a backup.
func (s *Store) Clone() *Store {
	c := *s
	c.keys, c.history = maps.Clone(s.keys), slices.Clone(s.history)
	c.leases = make(map[Lease]*leaseState, len(s.leases))
	for id, t := range s.leases {
		copied := *t
		c.leases[id] = &copied
	}
	return &c
}

// Grant makes a lease.
func (s *Store) Grant(now time.Time, ttl time.Duration) Lease {
	s.lastLease++
	s.leases[s.lastLease] = &leaseState{ttl, now.Add(ttl)}
	return s.lastLease
}

// Renew restarts the lifetime of a lease; false if it has ended.
func (s *Store) Renew(now time.Time, lease Lease) bool {
	t, lives := s.leases[lease]
	if lives {
		t.ends = now.Add(t.ttl)
	}
	return lives
}

// RenewAll restarts the lifetime of every lease, as a new leader of etcd does.
func (s *Store) RenewAll(now time.Time) {
	for _, t := range s.leases {
		t.ends = now.Add(t.ttl)
	}
}

// Expire ends all leases whose lifetime is over, and returns them in order.
func (s *Store) Expire(now time.Time) []Lease {
	var ended []Lease
	for id, t := range s.leases {
		if !now.Before(t.ends) {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	for _, id := range ended {
		s.End(id)
	}
	return ended
}

// End ends a lease and deletes its keys. The lease need not exist.
func (s *Store) End(lease Lease) {
	delete(s.leases, lease)
	var gone []Key
	for key, e := range s.keys {
		if e.Lease == lease && lease != 0 {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 {
		return
	}
	slices.SortFunc(gone, compareKeys)
	s.revision++
	for _, key := range gone {
		s.deleteKey(key)
	}
}

// Delete deletes a key if it exists, as a person would by hand.
func (s *Store) Delete(key Key) {
	if _, exists := s.keys[key]; exists {
		s.revision++
		s.deleteKey(key)
	}
}

func (s *Store) deleteKey(key Key) {
	delete(s.keys, key)
	s.history = append(s.history, Entry{Key: key, Revision: s.revision, Absent: true})
}

// Commit executes a transaction.
func (s *Store) Commit(txn Txn) Result {
	met := true
	found := make([]Entry, 0, len(txn.Ops))
	for _, op := range txn.Ops {
		e := s.Get(op.Key)
		found = append(found, e)
		met = met && (op.If == Always || op.If == 0 && e.Absent || !e.Absent && op.If == e.Revision)
	}
	if !met {
		return Result{Outcome: Refused, Revision: s.revision, Found: found}
	}
	for _, op := range txn.Ops {
		if s.leases[op.Lease] == nil && op.Lease != 0 {
			return Result{Outcome: NoLease}
		}
	}
	s.revision++
	s.writes++
	for _, op := range txn.Ops {
		e := Entry{Key: op.Key, Value: op.Value, Lease: op.Lease, Revision: s.revision}
		s.keys[op.Key] = e
		s.history = append(s.history, e)
	}
	return Result{Outcome: Done, Revision: s.revision}
}

// Get returns the present entry of a key.
func (s *Store) Get(key Key) Entry {
	if e, exists := s.keys[key]; exists {
		return e
	}
	return Entry{Key: key, Revision: s.revision, Absent: true}
}

// List returns all entries by key.
func (s *Store) List() Listing {
	l := Listing{Revision: s.revision, Entries: make([]Entry, 0, len(s.keys))}
	for _, e := range s.keys {
		l.Entries = append(l.Entries, e)
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int { return compareKeys(a.Key, b.Key) })
	return l
}

// Since returns the changes after a revision, in order. The error is ErrCompacted or nil.
func (s *Store) Since(revision int64) ([]Entry, error) {
	if revision < s.compacted {
		return nil, ErrCompacted
	}
	i, _ := slices.BinarySearchFunc(s.history, revision+1, func(e Entry, r int64) int { return cmp.Compare(e.Revision, r) })
	return s.history[i:], nil
}

// Compact drops the changes up to a revision.
func (s *Store) Compact(revision int64) {
	changes, err := s.Since(min(revision, s.revision))
	if err == nil {
		s.history, s.compacted = slices.Clone(changes), min(revision, s.revision)
	}
}

// Revision is the revision of the last write.
func (s *Store) Revision() int64 { return s.revision }

// Writes is the number of committed transactions.
func (s *Store) Writes() int { return s.writes }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Slot, b.Slot))
}

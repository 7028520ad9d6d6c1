package ownership

import (
	"cmp"
	"slices"
)

// Member is a scheduler that can own slots.
type Member struct {
	// ID names the scheduler; no two running ones have the same.
	ID string
	// Addr is its address, host:port.
	Addr string
	// Draining says that the scheduler is about to stop and gets no slot.
	Draining bool
}

// Ranked returns the members that may get a slot, in the order in which they claim it
// (rendezvous hashing). Observers with the same members agree on it. A member that comes or
// goes changes the first rank only of its own share of slots.
func Ranked(slot Slot, members []Member) []Member {
	type scored struct {
		Member
		score uint64
	}
	list := make([]scored, 0, len(members))
	for _, m := range members {
		if !m.Draining {
			list = append(list, scored{m, score(slot, m.ID)})
		}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
	ranked := make([]Member, len(list))
	for i, m := range list {
		ranked[i] = m.Member
	}
	return ranked
}

// score mixes FNV-1a, whose last bytes barely reach its high bits, with the finalizer of
// MurmurHash3. It runs for each slot and member, so it allocates nothing.
func score(slot Slot, id string) uint64 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	x := uint64(offset)
	for i := range len(id) {
		x = (x ^ uint64(id[i])) * prime
	}
	x = (x ^ uint64(slot>>8)) * prime
	x = (x ^ uint64(slot&0xff)) * prime
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

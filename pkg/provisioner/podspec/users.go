package podspec

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// GroupID is the group of both containers, so that every user can read what an image lets
	// its group read.
	GroupID int64 = 65532
	// UserID is the user of functions, unless namespaces have users of their own. The
	// processes of the control plane have it too.
	UserID int64 = 65532
	// AgentUserID is the user of agents: a function that uses up what the kernel grants
	// to a user takes nothing from its agent.
	AgentUserID int64 = 65533

	// leastNamespaceUser is above all users that images and nodes name by custom.
	leastNamespaceUser int64 = 1 << 16
	maxUser            int64 = math.MaxInt32
)

// UserIDs are the users of functions: each namespace has one of Count from Base on, by
// its name. None means UserID for all.
type UserIDs struct{ Base, Count int64 }

// Of is the user of a namespace. Two namespaces have the same by chance, of n ones about
// n*n/(2*Count) pairs.
func (u UserIDs) Of(namespace string) int64 {
	if u.Count <= 0 {
		return UserID
	}
	// Quicker hashes (FNV) give names that differ in a number the same user too often.
	hash := sha256.Sum256([]byte(namespace))
	return u.Base + int64(binary.BigEndian.Uint64(hash[:])%uint64(u.Count))
}

// Validate rejects users that belong to others. A user namespace has only those below
// leastNamespaceUser.
func (u UserIDs) Validate(userNamespaces bool) error {
	switch {
	case u == UserIDs{}:
		return nil
	case u.Base < leastNamespaceUser || u.Count < 1 || u.Count > maxUser-u.Base+1:
		return fmt.Errorf("users %d and %d from there on are not between %d and %d: choose for example 1000000000 and 800000000",
			u.Base, u.Count, leastNamespaceUser, maxUser)
	case userNamespaces:
		return errors.New("a pod with users of its own needs none for its namespace: choose one of the two")
	}
	return nil
}

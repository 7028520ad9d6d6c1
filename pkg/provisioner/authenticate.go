package provisioner

import (
	"crypto/subtle"
	"fmt"
)

// Authenticator finds out which instance an agent is of.
type Authenticator struct {
	inventory *Inventory
	verify    func(key Key, proof string) error
	identify  func(proof string) (Key, error)
}

// Check checks an agent's proof and returns which instance it is of. The error is
// ErrUnknownInstance, wraps ErrBadToken, is a passing one of Deps.Verify, or nil.
func (a *Authenticator) Check(key Key, proof string) (Instance, error) {
	if a.verify != nil {
		if err := a.verify(key, proof); err != nil {
			return Instance{}, err
		}
		return a.inventory.get(key)
	}
	in, err := a.inventory.get(key)
	if err != nil {
		return Instance{}, err
	}
	if in.Token == "" || subtle.ConstantTimeCompare([]byte(in.Token), []byte(proof)) != 1 {
		return Instance{}, fmt.Errorf("%w: %s", ErrBadToken, key.CID)
	}
	return in, nil
}

// Recognize returns the instance that an agent's proof is of. The error is
// ErrUnknownInstance, wraps ErrBadToken or is a passing one. Without spare instances
// every proof is unknown.
func (a *Authenticator) Recognize(proof string) (Instance, error) {
	if a.identify == nil {
		return Instance{}, ErrUnknownInstance
	}
	key, err := a.identify(proof)
	if err != nil {
		return Instance{}, err
	}
	return a.inventory.get(key)
}

package provisioner

import (
	"crypto/subtle"
	"fmt"
)

// Authenticator identifies the instances of agents.
type Authenticator struct {
	inventory *Inventory
	verify    func(key Key, proof string) error
	identify  func(proof string) (Key, error)
}

// Check verifies an agent's proof and returns its instance. The error is ErrUnknownInstance,
// wraps ErrBadToken, is a transient one of Deps.Verify, or nil.
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

// Recognize returns the instance that an agent's proof belongs to. The error is
// ErrUnknownInstance, wraps ErrBadToken or is transient. Without spare instances every proof
// is unknown.
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

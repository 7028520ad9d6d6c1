package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// record is what a cluster leaves on disk for those who come after its starter.
type record struct {
	Range     addresses `json:"range"`
	Programs  string    `json:"programs"`
	Nodes     []Node    `json:"nodes"`
	Processes []process `json:"processes"`
}

// readRecord returns nil if there is none.
func readRecord(l layout) (*record, error) {
	text, err := os.ReadFile(l.record())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; end its processes by hand and remove the folder", l.record(), err)
	}
	return &r, nil
}

// write replaces the file at once, so that a reader never sees half of it.
func (r record) write(l layout) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.record()+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(l.record()+".new", l.record())
}

// find returns the process of this name.
func (r record) find(name string) (process, bool) {
	for _, p := range r.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return process{}, false
}

// set adds a process, or replaces the one of its name.
func (r *record) set(p process) {
	for i := range r.Processes {
		if r.Processes[i].Name == p.Name {
			r.Processes[i] = p
			return
		}
	}
	r.Processes = append(r.Processes, p)
}

func (r record) running() []process {
	var alive []process
	for _, p := range r.Processes {
		if p.alive() {
			alive = append(alive, p)
		}
	}
	return alive
}

package file

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// keptRecord is a record as the store keeps it: most functions are looked at rarely, and only the time of
// their next decision is read again and again.
type keptRecord struct {
	*catalog.Packed[record]
	// due is when a decision is due, in nanoseconds since 1970; 0 for never.
	due int64
}

func (k keptRecord) dueAt() time.Time {
	if k.due == 0 {
		return time.Time{}
	}
	return time.Unix(0, k.due)
}

// open is the record of a function; false if it does not exist. The lock must be held.
func (s *Store) open(key invocation.FunctionKey) (record, bool) {
	kept, ok := s.records[key]
	if !ok {
		return record{}, false
	}
	r := *kept.Open()
	r.due = kept.dueAt()
	return r, true
}

// keep replaces a function's record. The lock must be held.
func (s *Store) keep(r record) {
	var due int64
	if !r.due.IsZero() {
		due = r.due.UnixNano()
	}
	r.due = time.Time{}
	// Times of decisions may have fractions of a second, which only the memory holds.
	s.records[r.fn.Key()] = keptRecord{catalog.PackWhole(&r, sameRecord), due}
}

// sameRecord compares all that is packed.
func sameRecord(a, b *record) bool {
	return sameState(*a, *b) && equality.Semantic.DeepEqual(a.known, b.known) && equality.Semantic.DeepEqual(a.plan, b.plan)
}

// recordJSON is a record as JSON, without the time of its next decision.
type recordJSON struct {
	Function  *v1alpha1.Function             `json:"f"`
	Revisions []*v1alpha1.FunctionRevision   `json:"r,omitempty"`
	Known     map[string]rollout.Observation `json:"k,omitempty"`
	Plan      rollout.Plan                   `json:"p,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (r *record) MarshalJSON() ([]byte, error) {
	return json.Marshal(recordJSON{r.fn, r.revisions, r.known, r.plan})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *record) UnmarshalJSON(text []byte) error {
	var read recordJSON
	err := json.Unmarshal(text, &read)
	*r = record{fn: read.Function, revisions: read.Revisions, known: read.Known, plan: read.Plan}
	return err
}

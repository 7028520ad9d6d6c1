package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// ErrNotFound says that the store has no function of that name.
var ErrNotFound = errors.New("no such function")

// ErrConflict says that a function is not any more what a change of it goes by.
var ErrConflict = errors.New("changed meanwhile")

// InvalidError says why a Function cannot be applied. All other errors of Apply come from the
// disk.
type InvalidError struct {
	Key invocation.FunctionKey
	// Problems is not empty.
	Problems field.ErrorList
}

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("function %s: %s", e.Key, p.Error()))
	}
	return strings.Join(lines, "\n")
}

// Result says what Apply did.
type Result string

const (
	// Created says that the function is new.
	Created Result = "created"
	// Configured says that the function was changed.
	Configured Result = "configured"
	// Unchanged says that the function was so already.
	Unchanged Result = "unchanged"
)

// Store holds the Functions of a folder. It may be used by many goroutines at a
// time.
type Store struct {
	dir     string
	catalog *catalog.Catalog
	// mu orders changes, so that files and catalog change together.
	mu      sync.Mutex
	records map[invocation.FunctionKey]keptRecord
}

// Open loads the Functions of a folder, which is made if it is missing. Its
// error names every file that cannot be loaded and what to do about it.
func Open(dir string) (*Store, error) { return OpenInto(dir, catalog.New()) }

// OpenInto is Open for a catalog that is there already, and that nobody else fills.
func OpenInto(dir string, filled *catalog.Catalog) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of functions; make it by hand or choose another: %w", err)
	}
	functions, err := load(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, catalog: filled, records: make(map[invocation.FunctionKey]keptRecord)}
	for _, r := range functions {
		// Time has passed since it was kept.
		r.due = time.Now()
		s.publish(r)
	}
	return s, nil
}

// Catalog is what the store holds at any time. It must not be changed but
// through the store.
func (s *Store) Catalog() *catalog.Catalog { return s.catalog }

// Get returns the function of that name. Its status says where calls go, and nothing
// else. It is shared and must not be changed.
func (s *Store) Get(key invocation.FunctionKey) (*v1alpha1.Function, bool) {
	entry, ok := s.catalog.Get(key)
	if !ok {
		return nil, false
	}
	return entry.Function, true
}

// List returns all functions as Get does, in the order of their keys.
func (s *Store) List() []*v1alpha1.Function {
	entries := s.catalog.List()
	functions := make([]*v1alpha1.Function, len(entries))
	for i, entry := range entries {
		functions[i] = entry.Function
	}
	return functions
}

// Apply makes the store hold f: with its defaults, if it is valid, and if it
// can run in local mode. Of the metadata only the name, the namespace, labels
// and annotations count; the rest is the store's to say. The generation rises
// when the spec changes, or the code that it names by a path. A change of the template
// or of that code makes a revision. Apply neither keeps nor changes f. Its error is an
// *InvalidError if f is at fault. After an error the catalog is as it was; after
// one of the disk the file may be the former or the new one, until the function
// is applied again.
func (s *Store) Apply(f *v1alpha1.Function) (Result, error) { return s.Replace("", f) }

// Replace is Apply for f that was made from what was read before. It returns ErrConflict unless
// the store still holds base, so that no change in between is undone. An empty base is any.
func (s *Store) Replace(base Version, f *v1alpha1.Function) (Result, error) {
	want, err := complete(f)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	have, exists := s.open(want.Key())
	if base != "" && (!exists || VersionOf(have.fn) != base) {
		return "", fmt.Errorf("function %s: %w", want.Key(), ErrConflict)
	}
	result := identify(want, have.fn, now)
	if result == Unchanged {
		return result, nil
	}
	if err := s.persist(converge(now, record{fn: want, revisions: startable(want, have.revisions), known: have.known})); err != nil {
		return "", fmt.Errorf("cannot keep function %s; make room and see to the rights of the folder, then apply it again: %w", want.Key(), err)
	}
	return result, nil
}

// Preview is what Apply would do now, and the function that the store would hold. It
// changes nothing.
func (s *Store) Preview(f *v1alpha1.Function) (Result, *v1alpha1.Function, error) {
	want, err := complete(f)
	if err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, _ := s.open(want.Key())
	return identify(want, have.fn, time.Now()), want, nil
}

// complete is the Function that Apply keeps, without an identity. Its error is an
// *InvalidError.
func complete(f *v1alpha1.Function) (*v1alpha1.Function, error) {
	want := &v1alpha1.Function{Spec: *f.Spec.DeepCopy(), TypeMeta: f.TypeMeta}
	kept := f.ObjectMeta.DeepCopy()
	want.Namespace, want.Name = kept.Namespace, kept.Name
	want.Labels, want.Annotations = kept.Labels, kept.Annotations
	v1alpha1.Default(want)
	problems := validate(want)
	if len(problems) == 0 {
		problems = checkCode(want)
	}
	if len(problems) > 0 {
		return nil, &InvalidError{Key: want.Key(), Problems: problems}
	}
	stampCode(want)
	return want, nil
}

// identify gives want its identity, given the present function have, which may be nil, and
// returns whether it is created, changed or unchanged.
func identify(want, have *v1alpha1.Function, now time.Time) Result {
	if have == nil {
		want.UID = uuid.NewUUID()
		// The file holds whole seconds.
		want.CreationTimestamp = metav1.NewTime(now).Rfc3339Copy()
		want.Generation = 1
		return Created
	}
	want.UID, want.CreationTimestamp, want.Generation = have.UID, have.CreationTimestamp, have.Generation
	want.Status = *have.Status.DeepCopy()
	if !equality.Semantic.DeepEqual(want.Spec, have.Spec) ||
		want.Annotations[v1alpha1.AnnotationCodeStamp] != have.Annotations[v1alpha1.AnnotationCodeStamp] {
		want.Generation++
		return Configured
	}
	if !equality.Semantic.DeepEqual(want.Labels, have.Labels) ||
		!equality.Semantic.DeepEqual(want.Annotations, have.Annotations) {
		return Configured
	}
	return Unchanged
}

// Delete removes a function; ErrNotFound if it does not exist.
func (s *Store) Delete(key invocation.FunctionKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.records[key]; !ok {
		return fmt.Errorf("function %s: %w", key, ErrNotFound)
	}
	if err := removeFile(s.path(key)); err != nil {
		return fmt.Errorf("cannot remove function %s; see to the rights of the folder, then delete it again: %w", key, err)
	}
	delete(s.records, key)
	s.catalog.Remove(key)
	return nil
}

// path is where a valid function is kept: its names are labels of DNS, which
// are safe as names of files.
func (s *Store) path(key invocation.FunctionKey) string {
	return filepath.Join(s.dir, key.Namespace, key.Name+extension)
}

func validate(f *v1alpha1.Function) field.ErrorList {
	return append(v1alpha1.Validate(f), v1alpha1.ValidateLocal(f)...)
}

package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// small is a small function with one proven revision, as most are.
func small(i int) *rollout.Entry {
	f := &v1alpha1.Function{}
	f.Name = fmt.Sprintf("function-%05d", i)
	f.Spec.Template.Command = []string{"./server", "--verbose"}
	f.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "STAGE", Value: "production"}}
	f.Spec.Template.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
	}
	v1alpha1.Default(f)
	dice := rand.New(rand.NewPCG(uint64(i), 1))
	f.UID, f.Generation = randomUID(dice), 1
	f.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	r := v1alpha1.NewRevision(f)
	r.UID = randomUID(dice)
	rollout.State{
		Latest: r.Name, Ready: r.Name, Traffic: []v1alpha1.TrafficStatus{{RevisionName: r.Name, Weight: 100}},
	}.Write(&f.Status)
	return rollout.Compose(f, []*v1alpha1.FunctionRevision{r})
}

func randomUID(dice *rand.Rand) types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", dice.Uint32(), dice.Uint32()>>16, dice.Uint32()>>20, dice.Uint32()>>20, dice.Uint64()>>16))
}

// noise is text that cannot be compressed by much.
func noise(bytes int) string {
	dice, text := rand.New(rand.NewPCG(1, 1)), make([]byte, bytes)
	for i := range text {
		text[i] = byte(' ' + dice.IntN(95))
	}
	return string(text)
}

// idle lets everything go that nobody uses. What pools hold survives one collection.
func idle() {
	for range 3 {
		runtime.GC()
	}
}

// fill sets fields at random to what manifests can say.
func fill(v reflect.Value, dice *rand.Rand) {
	switch value := v.Addr().Interface().(type) {
	case *metav1.Time:
		if dice.IntN(2) == 0 {
			*value = metav1.NewTime(time.Unix(dice.Int64N(4_000_000_000), 0))
		}
		return
	case *v1alpha1.Duration:
		value.Duration = time.Duration(dice.IntN(100_000_000)) * time.Millisecond
		return
	case *resource.Quantity:
		*value = resource.MustParse([]string{"0", "1", "100m", "1.5", "128Mi", "1e3", "9999999999999999999"}[dice.IntN(7)])
		return
	case *[]metav1.ManagedFieldsEntry:
		return // no catalog holds them
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "default", `<"&">\`, "zwölf\u2028\x01\n", "00001", "true"}[dice.IntN(7)])
	case reflect.Bool:
		v.SetBool(dice.IntN(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(dice.Int64N(1<<31) - 1<<30)
	default:
		fillParts(v, dice)
	}
}

func fillParts(v reflect.Value, dice *rand.Rand) {
	some := dice.IntN(3)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), dice)
		}
	case reflect.Pointer:
		if some > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), dice)
			if at, is := v.Interface().(*metav1.Time); is && at.IsZero() {
				v.SetZero() // manifests cannot say it
			}
		}
	case reflect.Slice:
		for range some {
			part := reflect.New(v.Type().Elem()).Elem()
			fill(part, dice)
			v.Set(reflect.Append(v, part))
		}
	case reflect.Map:
		for range some {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, part := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, dice)
			fill(part, dice)
			v.SetMapIndex(key, part)
		}
	default:
		panic(fmt.Sprintf("the test cannot fill a %s", v.Type()))
	}
}

func random[T any](dice *rand.Rand) *T {
	value := new(T)
	fill(reflect.ValueOf(value).Elem(), dice)
	return value
}

// randomEntry is an entry with random units; some are like their function.
func randomEntry(dice *rand.Rand) *rollout.Entry {
	e := &rollout.Entry{Function: random[v1alpha1.Function](dice)}
	for range dice.IntN(4) {
		unit := random[v1alpha1.Function](dice)
		switch dice.IntN(4) {
		case 0:
			unit = e.Function
		case 1:
			unit.Spec.Template = e.Function.Spec.Template
		case 2:
			unit.Labels = e.Function.Labels
		}
		e.Units = append(e.Units, unit)
		e.Routes = append(e.Routes, rollout.Route{Tag: []string{"", "blue"}[dice.IntN(2)], Weight: dice.Int32N(101), Unit: e.Units[dice.IntN(len(e.Units))]})
	}
	return e
}

func TestAnOpenedEntryIsTheOneThatWasPacked(t *testing.T) {
	for seed := range uint64(500) {
		want := randomEntry(rand.New(rand.NewPCG(seed, 0)))
		packed := Pack(want)
		if packed.Size() == 0 {
			t.Fatalf("seed %d: an entry is not packed", seed)
		}
		got := packed.read()
		if !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(want, got))
		}
		for i := range want.Routes {
			at := slices.Index(want.Units, want.Routes[i].Unit)
			if got.Routes[i].Unit != got.Units[at] {
				t.Errorf("seed %d: route %d leads to a copy of its unit", seed, i)
			}
		}
		for i, unit := range want.Units {
			if (unit == want.Function) != (got.Units[i] == got.Function) {
				t.Errorf("seed %d: unit %d is not what it was to its function", seed, i)
			}
		}
	}
}

func TestUsersShareWhatTheyOpen(t *testing.T) {
	packed := Pack(small(1))
	idle()
	if packed.IsOpen() {
		t.Error("an entry that nobody uses is open")
	}
	first := packed.Open()
	idle()
	if packed.Open() != first {
		t.Error("an entry that is used was opened again")
	}
	runtime.KeepAlive(first)
}

// Nobody keeps what many open at the same time, and let go again.
func TestManyOpenAtTheSameTime(t *testing.T) {
	packed := Pack(small(1))
	want := small(1)
	var using sync.WaitGroup
	for range 8 {
		using.Go(func() {
			for i := range 50 {
				a, b := packed.Open(), packed.Open()
				if a != b || !equality.Semantic.DeepEqual(a, want) {
					t.Error("an entry was opened twice, or is another one")
				}
				if i%10 == 0 {
					runtime.GC()
				}
				runtime.KeepAlive(a)
			}
		})
	}
	using.Wait()
}

func TestWhatCannotBePackedStays(t *testing.T) {
	strange := small(1)
	strange.Routes[0].Unit = small(2).Function
	below := small(1)
	below.Function.Spec.Template.Timeout.Duration = -1
	long := small(1)
	long.Function.Spec.Template.Code = &v1alpha1.Code{Inline: noise(2 * mostPacked)}
	for _, e := range []*rollout.Entry{strange, below, long} {
		packed := Pack(e)
		idle()
		if packed.Size() != 0 || !packed.IsOpen() || packed.Open() != e {
			t.Errorf("got %v", packed.Open())
		}
	}
	same := func(a, b *metav1.Time) bool { return a.Equal(b) }
	whole, part := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(1, 1))
	if PackWhole(&whole, same).Size() == 0 || PackWhole(&part, same).Size() != 0 {
		t.Error("a value is packed whose JSON says less, or one is not whose JSON says all")
	}
}

// An idle function takes few bytes, with a watcher that knows it. The count is of the heap.
func TestAnIdleFunctionTakesFewBytes(t *testing.T) {
	const functions, most = 4000, 900
	c := New()
	ctx, stop := context.WithCancel(t.Context())
	seen, done := make(chan struct{}, functions), make(chan error, 1)
	before := live()
	for i := range functions {
		c.Put(small(i))
	}
	go func() { done <- c.Watch(ctx, func(Event) { seen <- struct{}{} }) }()
	for range functions {
		<-seen
	}
	each := (live() - before) / functions
	t.Logf("an idle function takes %d bytes", each)
	if each > most {
		t.Errorf("an idle function takes %d bytes, want at most %d", each, most)
	}
	for _, e := range c.List() {
		if want := small(0).Function.Spec; !equality.Semantic.DeepEqual(e.Function.Spec, want) {
			t.Fatal(cmp.Diff(want, e.Function.Spec))
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(errors.Unwrap(err))
	}
}

// live are the bytes of the heap that are in use.
func live() int64 {
	idle()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkGet(b *testing.B) {
	b.Run("used", func(b *testing.B) {
		c := New()
		used := small(1)
		c.Put(used)
		b.ReportAllocs()
		for b.Loop() {
			if e, _ := c.Get(used.Key()); e != used {
				b.Fatal("another entry")
			}
		}
	})
	b.Run("idle", func(b *testing.B) {
		packed := Pack(small(1))
		b.ReportAllocs()
		for b.Loop() {
			packed.read() // Get of an entry that nobody used since a collection
		}
	})
}

func BenchmarkPut(b *testing.B) {
	c, entries := New(), []*rollout.Entry{small(1), small(1)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Put(entries[i%2])
	}
}

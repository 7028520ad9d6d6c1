package cgroups

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The names of groups that may be low. Nothing else is ever written to.
var (
	podName     = regexp.MustCompile(`^pod[0-9a-f-]{1,64}$`)
	podSlice    = regexp.MustCompile(`^([0-9A-Za-z_]+-)*kubepods(-burstable|-besteffort)?-pod[0-9a-f_]{1,64}\.slice$`)
	createdName = regexp.MustCompile(`^` + created + `[0-9]+-[0-9A-Za-z.-]{1,200}$`)
	podUID      = regexp.MustCompile(`^[0-9a-f-]{1,64}$`)
)

// mayBeLow reports whether a folder is the group of a pod or one that Create made.
func mayBeLow(dir string) bool {
	name := filepath.Base(dir)
	return podName.MatchString(name) || podSlice.MatchString(name) || createdName.MatchString(name)
}

// deepest is how many folders below the base the group of a pod may be: kubelets of clusters in
// containers have a few more above theirs.
const deepest = 8

// podsFolders are where kubelets have the groups of all pods, by their own names and by those for
// systemd. The last two are of nodes that are containers themselves.
var podsFolders = []string{"kubepods", "kubepods.slice", "kubelet/kubepods", "kubelet.slice/kubelet-kubepods.slice"}

// FindPod finds the group of a pod. The error is fs.ErrNotExist if it has none.
func (t *Tree) FindPod(uid string) (Folder, error) {
	if !podUID.MatchString(uid) {
		return Folder{}, fmt.Errorf("cgroups: %q is not the UID of a pod", uid)
	}
	if t.version == nil {
		return Folder{}, fmt.Errorf("cgroups: %s", t)
	}
	for _, name := range usualNames(uid) {
		if f := t.base.below(name); isFolder(f.CPU) {
			return f, nil
		}
	}
	inside, err := t.walkFor(uid)
	if err != nil {
		return Folder{}, err
	}
	return t.base.below(inside), nil
}

// usualNames are where kubelets have the groups of a pod: one for each QoS class, by the kubelet's
// own names and by those for systemd.
func usualNames(uid string) []string {
	u := strings.ReplaceAll(uid, "-", "_")
	return []string{
		"kubepods/burstable/pod" + uid,
		"kubepods/pod" + uid,
		"kubepods/besteffort/pod" + uid,
		"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + u + ".slice",
		"kubepods.slice/kubepods-pod" + u + ".slice",
		"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + u + ".slice",
	}
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// walkFor looks for the group of a pod wherever it may be, and returns its path below the base.
func (t *Tree) walkFor(uid string) (string, error) {
	slice := "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	var found string
	err := filepath.WalkDir(t.base.CPU, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // a group may go at any time
		}
		inside, err := filepath.Rel(t.base.CPU, dir)
		switch name := entry.Name(); {
		case err != nil:
			return err
		case mayBeLow(dir) && (name == "pod"+uid || strings.HasSuffix(name, slice)):
			found = inside
			return fs.SkipAll
		case strings.Count(inside, "/") >= deepest || podName.MatchString(name) || podSlice.MatchString(name):
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && found == "" {
		err = fmt.Errorf("cgroups: the pod %s has no cgroup below %s: %w", uid, t.base.CPU, fs.ErrNotExist)
	}
	return found, err
}

package cgroups

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mount is a mounted hierarchy of control groups.
type mount struct {
	point string
	// top is the group whose folder is at the mount point.
	top      string
	unified  bool
	options  string // of the hierarchy: its controllers with version 1
	writable bool
}

type mounts []mount

// mountsOf reads the hierarchies from a mountinfo file:
//
//	36 35 98:0 /top /point rw,noatime shared:1 - cgroup source rw,cpu,cpuacct
func mountsOf(text string) mounts {
	var all mounts
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		fields, of := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 6 || len(of) < 3 || of[0] != "cgroup" && of[0] != "cgroup2" {
			continue
		}
		all = append(all, mount{
			top: unescape(fields[3]), point: unescape(fields[4]), writable: hasWord(fields[5], "rw") && hasWord(of[2], "rw"),
			unified: of[0] == "cgroup2", options: of[2],
		})
	}
	// A program in a container may see a hierarchy twice: as its own, and as one that was mounted
	// for it to write to.
	slices.SortStableFunc(all, func(a, b mount) int {
		switch {
		case a.writable == b.writable:
			return 0
		case a.writable:
			return -1
		}
		return 1
	})
	return all
}

// below are the mounts at a folder and below it.
func (all mounts) below(folder string) mounts {
	if folder == "" {
		return all
	}
	return slices.DeleteFunc(all, func(m mount) bool {
		inside, err := filepath.Rel(folder, m.point)
		return err != nil || inside == ".." || strings.HasPrefix(inside, "../")
	})
}

// unescape reads a path of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

func hasWord(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// folder is where a group of the hierarchy is. A group above what is mounted counts as its top.
func (m mount) folder(root, group string) string {
	inside, err := filepath.Rel(m.top, group)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		inside = "."
	}
	return filepath.Join(root, m.point, inside)
}

// hierarchies are those that have the cpu controller, and the processor time of groups.
type hierarchies struct {
	version    *version
	cpu, usage mount
}

// hierarchies prefers version 1 where both are mounted, because a controller is in one of them
// only.
func (all mounts) hierarchies(root string) (hierarchies, error) {
	with := func(controller string) int {
		return slices.IndexFunc(all, func(m mount) bool { return !m.unified && hasWord(m.options, controller) })
	}
	cpu, usage := with("cpu"), with("cpuacct")
	if cpu >= 0 && usage >= 0 {
		return hierarchies{v1, all[cpu], all[usage]}, nil
	}
	if cpu >= 0 {
		return hierarchies{}, errors.New("the cpuacct controller of cgroup v1 is not mounted")
	}
	unified := slices.IndexFunc(all, func(m mount) bool { return m.unified })
	if unified < 0 {
		return hierarchies{}, errors.New("no control groups are mounted")
	}
	m := all[unified]
	controllers, err := os.ReadFile(filepath.Join(root, m.point, "cgroup.controllers"))
	if err == nil && !slices.Contains(strings.Fields(string(controllers)), "cpu") {
		err = errors.New("the cpu controller is not available at " + m.point)
	}
	return hierarchies{v2, m, m}, err
}

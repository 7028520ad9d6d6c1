package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheLastStageOfADockerfileCounts(t *testing.T) {
	got, err := configOf(`# a comment
FROM a AS build
ENV LOST=1
USER root
RUN make
FROM b
ARG VERSION=dev REVISION=
LABEL name.a="one two" \
      # in between
      name.b="${VERSION}" \
      name.c="${REVISION}"
ENV A=1 B=2
ENV C=3
WORKDIR /work
USER 1:2
ENTRYPOINT ["a", "b c"]
`, map[string]string{"VERSION": "v2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Labels) != 2 || got.Labels["name.a"] != "one two" || got.Labels["name.b"] != "v2" {
		t.Errorf("the labels are %v", got.Labels)
	}
	if !slices.Equal(got.Env, []string{"A=1", "B=2", "C=3"}) || !slices.Equal(got.Entrypoint, []string{"a", "b c"}) ||
		got.User != "1:2" || got.WorkingDir != "/work" {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsNotUnderstoodInADockerfileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"FROM a\nVOLUME /x":     "VOLUME",
		"FROM a\nLABEL a=b":     "LABEL",
		"FROM a\nENTRYPOINT ls": "ENTRYPOINT",
	} {
		if _, err := configOf(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that names %s", text, err, want)
		}
	}
}

// What Docker would copy is there: nothing else tests the Dockerfiles here.
func TestDockerfilesCopyWhatExists(t *testing.T) {
	dockerfiles, err := filepath.Glob("../*/Dockerfile")
	if err != nil || len(dockerfiles) < 5 {
		t.Fatalf("Dockerfiles: %v, %v", dockerfiles, err)
	}
	for _, dockerfile := range dockerfiles {
		text, err := os.ReadFile(dockerfile)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(joinLines(string(text))) {
			words := strings.Fields(line)
			if len(words) < 3 || words[0] != "COPY" || strings.HasPrefix(words[1], "--from=") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", "..", source)); err != nil {
					t.Errorf("%s: %v", dockerfile, err)
				}
			}
		}
	}
}

func TestLibrariesAreReadFromWhatLddSays(t *testing.T) {
	got, err := librariesIn(`/usr/bin/node:
	linux-vdso.so.1 (0x00007fa58a952000)
	libdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007fa58a93c000)
	/lib64/ld-linux-x86-64.so.2 (0x00007fa58a954000)
/lib/other.so:
	statically linked
`)
	if want := []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib64/ld-linux-x86-64.so.2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := librariesIn("\tliba.so => not found\n"); err == nil || !strings.Contains(err.Error(), "liba.so") {
		t.Errorf("got %v, want an error that names liba.so", err)
	}
}

func TestTheStandardLibraryLosesOnlyWhatFunctionsDoNotNeed(t *testing.T) {
	for _, below := range []string{"test", "unittest/test", "idlelib/x.py", "config-3.11-x86_64-linux-gnu",
		"lib-dynload/_testcapi.so", "__pycache__/os.cpython-311.opt-1.pyc"} {
		if !unneeded(below) {
			t.Errorf("%s stays", below)
		}
	}
	for _, below := range []string{".", "os.py", "unittest/mock.py", "__pycache__/os.cpython-311.pyc", "lib-dynload/_ssl.so", "doctest.py", "configparser.py"} {
		if unneeded(below) {
			t.Errorf("%s goes", below)
		}
	}
}

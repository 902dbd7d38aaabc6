// Command sbom prints the software bill of materials of a Go program, as CycloneDX JSON. It
// reads what the linker recorded, so it lists exactly the modules in the program, with their
// checksums. The same program gives the same bytes.
//
//	go run ./sbom VERSION PROGRAM >sbom.cdx.json
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fail("usage: sbom VERSION PROGRAM")
	}
	info, err := buildinfo.ReadFile(os.Args[2])
	if err != nil {
		fail("read the modules of %s: %v", os.Args[2], err)
	}
	e := cyclonedx.NewBOMEncoder(os.Stdout, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := e.Encode(bill(os.Args[1], info)); err != nil {
		fail("write the bill of materials: %v", err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "sbom: "+format+"\n", args...)
	os.Exit(1)
}

// bill lists the modules of a program. It has no time and no serial number, which would
// differ each time.
func bill(version string, info *debug.BuildInfo) *cyclonedx.BOM {
	b := cyclonedx.NewBOM()
	program := component(&debug.Module{Path: info.Main.Path, Version: version})
	program.Type = cyclonedx.ComponentTypeApplication
	var settings []cyclonedx.Property
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" {
			settings = append(settings, cyclonedx.Property{Name: strings.ToLower(s.Key), Value: s.Value})
		}
	}
	program.Properties = &settings
	b.Metadata = &cyclonedx.Metadata{Component: &program}
	all := []cyclonedx.Component{component(&debug.Module{Path: "std", Version: info.GoVersion})}
	needs := []string{all[0].BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component(m)
		all, needs = append(all, c), append(needs, c.BOMRef)
	}
	b.Components = &all
	b.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	return b
}

func component(m *debug.Module) cyclonedx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url,
	}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// corners is a picture whose corners are red, green, blue and white, clockwise.
func corners(width, height int) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{255, 0, 0, 255}
			switch right, low := x >= width/2, y >= height/2; {
			case right && low:
				c = color.RGBA{0, 0, 255, 255}
			case right:
				c = color.RGBA{0, 255, 0, 255}
			case low:
				c = color.RGBA{255, 255, 255, 255}
			}
			p.SetRGBA(x, y, c)
		}
	}
	return p
}

func encoded(t *testing.T, encode func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t *testing.T, p image.Image) []byte {
	t.Helper()
	return encoded(t, func(w io.Writer) error { return jpeg.Encode(w, p, nil) })
}

func asPNG(t *testing.T, p image.Image) []byte {
	t.Helper()
	return encoded(t, func(w io.Writer) error { return png.Encode(w, p) })
}

// withEXIF adds an EXIF segment with an orientation and a place.
func withEXIF(file []byte, orientation uint16) []byte {
	tiff := []byte("II\x2a\x00\x08\x00\x00\x00\x01\x00")
	tiff = binary.LittleEndian.AppendUint16(tiff, 0x0112)
	tiff = binary.LittleEndian.AppendUint16(tiff, 3)
	tiff = binary.LittleEndian.AppendUint32(tiff, 1)
	tiff = binary.LittleEndian.AppendUint32(tiff, uint32(orientation))
	data := append([]byte("Exif\x00\x00"), tiff...)
	data = append(data, "GPS 52.5163 13.3777"...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(data)+2))
	out := append(append([]byte{}, file[:2]...), segment...)
	return append(append(out, data...), file[2:]...)
}

// hugePNG is a small file that claims to be a picture of this size.
func hugePNG(t *testing.T, width, height uint32) []byte {
	t.Helper()
	file := asPNG(t, image.NewGray(image.Rect(0, 0, 1, 1)))
	binary.BigEndian.PutUint32(file[16:], width)
	binary.BigEndian.PutUint32(file[20:], height)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	transparent := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	noisy := image.NewNRGBA(image.Rect(0, 0, 400, 400))
	for i, n := 0, uint32(1); i < len(noisy.Pix); i++ {
		n = n*1664525 + 1013904223
		noisy.Pix[i] = byte(n >> 24)
	}
	paletted := image.NewPaletted(image.Rect(0, 0, 30, 30), color.Palette{color.Black, color.White})
	for name, tt := range map[string]struct {
		file          []byte
		mime          string
		width, height int
	}{
		"small":                 {asJPEG(t, corners(100, 50)), "image/jpeg", 100, 50},
		"wide":                  {asJPEG(t, corners(3200, 400)), "image/jpeg", 1568, 196},
		"thin":                  {asJPEG(t, corners(3, 3136)), "image/jpeg", 1, 1568},
		"opaque PNG":            {asPNG(t, corners(1600, 800)), "image/jpeg", 1568, 784},
		"transparent PNG":       {asPNG(t, transparent), "image/png", 40, 20},
		"large transparent PNG": {asPNG(t, noisy), "image/jpeg", 400, 400},
		"gray":                  {asJPEG(t, image.NewGray(image.Rect(0, 0, 20, 10))), "image/jpeg", 20, 10},
		"GIF": {encoded(t, func(w io.Writer) error { return gif.Encode(w, paletted, nil) }), "image/jpeg",
			30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := prepare(tt.file, 1568)
			if err != nil {
				t.Fatal(err)
			}
			c, format, err := image.DecodeConfig(bytes.NewReader(got.Data))
			if err != nil || "image/"+format != tt.mime || got.MIME != tt.mime || c.Width != tt.width || c.Height != tt.height ||
				got.Width != tt.width || got.Height != tt.height {
				t.Errorf("got %s of %d x %d, %v", format, c.Width, c.Height, err)
			}
		})
	}
}

// A picture is upright, and nothing says where it was taken.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for orientation, want := range map[uint16]string{ // the corners, clockwise
		0: "RGBW", 1: "RGBW", 2: "GRWB", 3: "BWRG", 4: "WBGR", 5: "RWBG", 6: "WRGB", 7: "BGRW", 8: "GBWR", 9: "RGBW",
	} {
		file := withEXIF(asJPEG(t, corners(64, 32)), orientation)
		got, err := prepare(file, 1568)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(got.Data, []byte("GPS")) || bytes.Contains(got.Data, []byte("Exif")) {
			t.Errorf("%d: the metadata is still there", orientation)
		}
		p, err := jpeg.Decode(bytes.NewReader(got.Data))
		if err != nil {
			t.Fatal(err)
		}
		b := p.Bounds()
		if upright := orientation < 5 || orientation > 8; (b.Dx() == 64) != upright {
			t.Errorf("%d: %v", orientation, b)
		}
		seen := ""
		for _, at := range []image.Point{{3, 3}, {b.Dx() - 4, 3}, {b.Dx() - 4, b.Dy() - 4}, {3, b.Dy() - 4}} {
			r, g, b, _ := p.At(at.X, at.Y).RGBA()
			switch high := func(v uint32) bool { return v > 0x8000 }; {
			case high(r) && high(g) && high(b):
				seen += "W"
			case high(r):
				seen += "R"
			case high(g):
				seen += "G"
			default:
				seen += "B"
			}
		}
		if seen != want {
			t.Errorf("orientation %d: corners %s, want %s", orientation, seen, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	photo := asJPEG(t, corners(640, 480))
	progressive := bytes.Clone(asJPEG(t, image.NewGray(image.Rect(0, 0, 16, 16))))
	sof := bytes.Index(progressive, []byte{0xff, 0xc0})
	progressive[sof+1] = 0xc2
	binary.BigEndian.PutUint16(progressive[sof+5:], 6900)
	binary.BigEndian.PutUint16(progressive[sof+7:], 7200)
	progressive[sof+11] = 0x11
	for name, tt := range map[string]struct {
		file []byte
		says string
	}{
		"huge":        {hugePNG(t, 30_000, 30_000), "30000 x 30000 pixels, which is too large"},
		"cut off":     {photo[:len(photo)/2], "damaged or incomplete"},
		"only a head": {photo[:30], "damaged or incomplete"},
		"SVG":         {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "not a JPEG"},
		"text":        {[]byte("hello"), "not a JPEG"},
		"empty":       {nil, "not a JPEG"},
		"an archive":  {[]byte("PK\x03\x04 and more"), "not a JPEG"},
	} {
		if _, err := prepare(tt.file, 1568); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
	if info := readJPEG(progressive); info.baseline || info.memory() != 5 {
		t.Errorf("a progressive file takes %v bytes a pixel: %+v", info.memory(), info)
	}
	if info := readJPEG(photo); !info.baseline || info.memory() != 1.5 {
		t.Errorf("a photo takes %v bytes a pixel: %+v", info.memory(), info)
	}
	if info := readJPEG([]byte{0xff, 0xd8, 0xff, 0xd0}); info.memory() != 20 {
		t.Errorf("an unusual file takes %v bytes a pixel", info.memory())
	}
}

// One picture is in memory at a time, and a file that is too large is not read to its end.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, corners(64, 64))
	var at, most atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := Prepare(t.Context(), 32, func(w io.Writer) error {
				most.Store(max(most.Load(), at.Add(1)))
				defer at.Add(-1)
				_, err := w.Write(file)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d pictures at a time", most.Load())
	}
	written := 0
	_, err := Prepare(t.Context(), 32, func(w io.Writer) error {
		for {
			n, err := w.Write(make([]byte, 1<<20))
			if written += n; err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, ErrTooLarge) || written > MaxFile {
		t.Errorf("read %d bytes of a large file: %v", written, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	decoding <- struct{}{}
	_, err = Prepare(ctx, 32, nil)
	<-decoding
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled one: %v", err)
	}
}

func FuzzPrepare(f *testing.F) {
	var j, p bytes.Buffer
	_ = jpeg.Encode(&j, corners(20, 10), nil)
	_ = png.Encode(&p, corners(20, 10))
	f.Add(j.Bytes())
	f.Add(p.Bytes())
	f.Add(withEXIF(j.Bytes(), 6))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8 "))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := prepare(file, 64)
		if err == nil && (got.Width > 64 || got.Height > 64 || len(got.Data) == 0) {
			t.Errorf("got %d x %d, %d bytes", got.Width, got.Height, len(got.Data))
		}
	})
}

// A format that another package of the process can decode is none that is shown.
func TestOtherFormatsAreRefused(t *testing.T) {
	t.Parallel()
	image.RegisterFormat("other", "OTHERFORMAT",
		func(io.Reader) (image.Image, error) { return corners(2, 2), nil },
		func(io.Reader) (image.Config, error) {
			return image.Config{ColorModel: color.RGBAModel, Width: 2, Height: 2}, nil
		})
	if _, err := prepare([]byte("OTHERFORMAT and more"), 100); !errors.Is(err, ErrType) {
		t.Errorf("got %v", err)
	}
}

// A JPEG that is small enough keeps its pixels and loses all else.
func TestSmallJPEGIsStripped(t *testing.T) {
	t.Parallel()
	segment := func(marker byte, text string) []byte {
		return append([]byte{0xff, marker, byte((len(text) + 2) >> 8), byte(len(text) + 2)}, text...)
	}
	plain := asJPEG(t, corners(64, 32))
	var dirty []byte
	for _, part := range [][]byte{
		plain[:2], segment(0xe1, "Exif\x00\x00 a place"), segment(0xe2, "ICC_PROFILE a place"), segment(0xfe, "a place"),
		segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x01\x01 a place"), segment(0xee, "Adobe a place"), plain[2:],
		[]byte("a place, and <script>"),
	} {
		dirty = append(dirty, part...)
	}
	got, err := prepare(dirty, 64)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(got.Data, []byte("place")) || bytes.Contains(got.Data, []byte("script")) {
		t.Errorf("it says where it was taken: %q", got.Data)
	}
	want, err := jpeg.Decode(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := jpeg.Decode(bytes.NewReader(got.Data))
	if err != nil || got.Width != 64 || got.Height != 32 {
		t.Fatalf("%d x %d: %v", got.Width, got.Height, err)
	}
	for x := range 64 {
		for y := range 32 {
			if shown.At(x, y) != want.At(x, y) {
				t.Fatalf("the pixel at %d, %d has changed", x, y)
			}
		}
	}
	if again, err := prepare(got.Data, 64); err != nil || !bytes.Equal(again.Data, got.Data) {
		t.Errorf("stripped again, it differs: %v", err)
	}
	for what, file := range map[string][]byte{"cut off": plain[:len(plain)-40], "no end": plain[:len(plain)-2]} {
		if data := stripped(file); data != nil {
			t.Errorf("%s: %d bytes", what, len(data))
		}
	}
}

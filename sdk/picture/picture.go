// Package picture prepares the pictures that people send for models: a JPEG, or a small
// PNG if it has transparent parts, without metadata such as the place where it was taken.
//
// What a picture is comes from its bytes. Its header is read before its pixels, so that a
// small file cannot take much memory; one picture is decoded at a time in a process.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // a format that people send
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // a format that people send

	"github.com/switchboard-run/switchboard/contract"
)

const (
	// MaxFile is the largest file, in bytes.
	MaxFile = 20 << 20
	// maxPixels and maxMemory bound a picture, and what decoding it takes.
	maxPixels = 50_000_000
	maxMemory = 256 << 20
	// maxTransparent bounds a PNG; a larger one becomes a JPEG on white.
	maxTransparent = 512 << 10
	// maxUnchanged bounds a JPEG whose pixels are sent as they are, without decoding them.
	maxUnchanged = 512 << 10
	quality      = 85
)

// ErrType means that the file is no picture, or one of a format that is not supported.
var ErrType = errors.New("it is not a JPEG, PNG, GIF or WebP picture")

// Picture is a prepared picture.
type Picture struct {
	MIME          string // image/jpeg or image/png
	Data          []byte
	Width, Height int
}

// decoding holds a token while a picture is decoded.
var decoding = make(chan struct{}, 1)

// Prepare prepares a picture so that its longer side has at most side pixels. It calls
// fetch, which writes the file, when it is this picture's turn. Errors are for people, or
// of fetch or ctx.
func Prepare(ctx context.Context, side int, fetch func(io.Writer) error) (Picture, error) {
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return Picture{}, context.Cause(ctx)
	}
	var file bytes.Buffer
	if err := fetch(&limited{to: &file, left: MaxFile}); err != nil {
		return Picture{}, err
	}
	return prepare(file.Bytes(), side)
}

// ErrTooLarge means that a file is larger than MaxFile.
var ErrTooLarge = fmt.Errorf("its file is larger than %d MB", MaxFile>>20)

// limited writes up to left bytes.
type limited struct {
	to   io.Writer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, ErrTooLarge
	}
	return l.to.Write(p)
}

func prepare(file []byte, side int) (Picture, error) {
	header, format, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case errors.Is(err, image.ErrFormat), err == nil && !contract.IsImageType("image/"+format):
		return Picture{}, ErrType
	case err != nil:
		return Picture{}, damaged(err)
	case header.Width < 1 || header.Height < 1:
		return Picture{}, errors.New("it has no pixels")
	}
	info, each := jpegInfo{}, memory(header.ColorModel)
	if format == "jpeg" {
		info = readJPEG(file)
		each = info.memory()
	}
	pixels := float64(header.Width) * float64(header.Height)
	if pixels > maxPixels || pixels*each > maxMemory {
		return Picture{}, fmt.Errorf("it has %d x %d pixels, which is too large to open", header.Width, header.Height)
	}
	upright := format == "jpeg" && info.orientation <= 1 && max(header.Width, header.Height) <= side
	if upright && (header.ColorModel == color.YCbCrModel || header.ColorModel == color.GrayModel) {
		if data := stripped(file); data != nil && len(data) <= maxUnchanged {
			return Picture{MIME: "image/jpeg", Data: data, Width: header.Width, Height: header.Height}, nil
		}
	}
	decoded, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return Picture{}, damaged(err)
	}
	return encode(turned(scaled(decoded, side), info.orientation))
}

// damaged is the error of a file that cannot be decoded.
func damaged(err error) error { return fmt.Errorf("its file is damaged or incomplete (%w)", err) }

// memory returns how many bytes a decoded pixel takes.
func memory(m color.Model) float64 {
	if m == color.RGBA64Model || m == color.NRGBA64Model {
		return 8
	}
	return 4
}

// scaled returns a picture whose longer side has at most side pixels. Halving first
// averages all pixels, without the memory that a better filter takes.
func scaled(p image.Image, side int) image.Image {
	for {
		size := p.Bounds().Size()
		longer := max(size.X, size.Y)
		if longer <= side {
			return p
		}
		to := image.Pt(max(1, size.X*side/longer), max(1, size.Y*side/longer))
		if longer >= 2*side {
			to = image.Pt(max(1, size.X/2), max(1, size.Y/2))
		}
		smaller := image.NewRGBA(image.Rectangle{Max: to})
		draw.ApproxBiLinear.Scale(smaller, smaller.Bounds(), p, p.Bounds(), draw.Src, nil)
		p = smaller
	}
}

// turned returns a picture upright, from its EXIF orientation.
func turned(p image.Image, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return p
	}
	b := p.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Pt(w, h)
	if orientation > 4 {
		size = image.Pt(h, w)
	}
	from, out := image.NewRGBA(image.Rect(0, 0, w, h)), image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(from, from.Bounds(), p, b.Min, draw.Src)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			copy(out.Pix[out.PixOffset(tx, ty):][:4], from.Pix[from.PixOffset(x, y):])
		}
	}
	return out
}

func encode(p image.Image) (Picture, error) {
	out := Picture{MIME: "image/jpeg", Width: p.Bounds().Dx(), Height: p.Bounds().Dy()}
	var b bytes.Buffer
	if o, known := p.(interface{ Opaque() bool }); known && !o.Opaque() {
		if err := png.Encode(&b, p); err != nil {
			return out, err
		}
		if b.Len() <= maxTransparent {
			out.MIME, out.Data = "image/png", b.Bytes()
			return out, nil
		}
		white := image.NewRGBA(image.Rect(0, 0, out.Width, out.Height))
		draw.Draw(white, white.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(white, white.Bounds(), p, p.Bounds().Min, draw.Over)
		p = white
		b.Reset()
	}
	err := jpeg.Encode(&b, p, &jpeg.Options{Quality: quality})
	out.Data = b.Bytes()
	return out, err
}

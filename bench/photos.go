package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

const (
	photoSize  = 300_000
	largePhoto = 5 << 20
	photoChats = 256
)

// withPhotos has the messages of a bed come with photos, to a model that sees.
func withPhotos(d *bed) error {
	var err error
	if d.photo, err = newPhoto(); err != nil {
		return err
	}
	return seeing(d)
}

// seeing has the model of a bed see images.
func seeing(d *bed) error {
	config := "channels: {telegram_channel: {allow_from: [\"*\"]}}\nextensions: {openai: {config: {vision: [\"*\"]}}}\n"
	return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600)
}

// photo is a picture as Telegram sends it, and how many of it were sent: each is a file of
// its own, because another number of bytes follows the picture.
type photo struct {
	data []byte // with room behind it
	size int
	sent int
}

// newPhoto returns a photo of photoSize bytes and 1,280 x 960 pixels.
func newPhoto() (*photo, error) {
	noise := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a picture
	picture := image.NewRGBA(image.Rect(0, 0, 1280, 960))
	for x := range 1280 {
		for y := range 960 {
			n := uint8(noise.UintN(24))
			picture.SetRGBA(x, y, color.RGBA{R: uint8(x/8) + n, G: uint8(y/8) + n, B: 90 + n, A: 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture, &jpeg.Options{Quality: 60}); err != nil {
		return nil, err
	}
	if b.Len() > photoSize {
		return nil, fmt.Errorf("the photo has %d bytes", b.Len())
	}
	b.Write(make([]byte, largePhoto+1<<20-b.Len()))
	return &photo{data: b.Bytes(), size: photoSize}, nil
}

// next returns the next file.
func (p *photo) next() *telegramtest.File {
	p.sent++
	return &telegramtest.File{Data: p.data[: p.size+p.sent : p.size+p.sent]}
}

// photos compares messages with a photo with plain ones, and measures the memory of all
// processes while many chats send large ones at once.
func photos(b *bench) error {
	if err := b.beside("a message with a photo of 300 kB beside a plain one", b.rounds, seeing, withPhotos); err != nil {
		return err
	}
	var ratios []float64
	for range b.rounds {
		var rates [2]float64
		for i, prepare := range []func(*bed) error{seeing, withPhotos} {
			d, err := b.prepared(prepare)
			if err != nil {
				return err
			}
			if rates[i], _, err = crowd(d, 16, b.scale(1000)); err != nil {
				return err
			}
			d.close()
		}
		ratios = append(ratios, rates[1]/rates[0])
	}
	fmt.Printf("the rate of 16 chats with photos beside plain ones: %s\n", spread(ratios, times))
	return b.manyPhotos()
}

// prepared returns a bed whose kernel has answered a few messages.
func (b *bench) prepared(prepare func(*bed) error) (*bed, error) {
	d, err := newBed()
	if err != nil {
		return nil, err
	}
	if err := prepare(d); err != nil {
		return nil, err
	}
	if err := d.start(b.binary); err != nil {
		return nil, err
	}
	return d, d.warm()
}

// manyPhotos measures memory before, while and after many chats send large photos at once.
func (b *bench) manyPhotos() error {
	const look = 100 * time.Millisecond
	chats := b.scale(photoChats)
	var before, peak, after []int64
	for range min(b.rounds, 3) {
		d, err := b.prepared(withPhotos)
		if err != nil {
			return err
		}
		kib, _ := d.pss()
		before = append(before, kib)
		for c := range chats {
			d.telegram.AddChat(telegramtest.Chat{ID: int64(100 + c), Type: telegramtest.Private})
		}
		d.photo.size = largePhoto
		most := kib
		for c := range chats {
			d.say(int64(100+c), "look")
		}
		for answered, waits := 0, context.Background(); answered < chats; {
			one, cancel := context.WithTimeout(waits, look)
			select {
			case <-d.replies:
				answered++
			case <-one.Done():
			}
			cancel()
			if kib, _ := d.pss(); kib > most {
				most = kib
			}
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // what is not needed any more is given back
		kib, _ = d.pss()
		peak, after = append(peak, most), append(after, kib)
		d.close()
	}
	mebibytes := func(kib int64) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }
	fmt.Printf("memory before %d chats send a photo of 5 MiB at once: %s\n", chats, spread(before, mebibytes))
	fmt.Println("the most while they are answered:", spread(peak, mebibytes))
	fmt.Println("10 s later:", spread(after, mebibytes))
	return nil
}

//! A file on a web server of our own that knows ranges: enough of HTTP/1.1 for one program that asks for one file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use crate::Result;

/// Serves a file for the rest of this program's life; gives its address.
pub(crate) fn serve(file: &Path) -> Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = format!("http://{}/model.gguf", listener.local_addr()?);
    let file = file.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let file = file.clone();
            // Whoever asks is told of a failure by a connection that ends.
            std::thread::spawn(move || answer(stream, file).map_err(|error| error.to_string()));
        }
    });
    Ok(address)
}

/// Answers the requests of a connection until it ends.
fn answer(mut stream: TcpStream, file: PathBuf) -> Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut file = File::open(file)?;
    let len = file.metadata()?.len();
    loop {
        let mut range = None;
        let mut line = String::new();
        while requests.read_line(&mut line)? > 0 && line != "\r\n" {
            if let Some(asked) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                let (from, to) = asked.trim().split_once('-').ok_or("a range is expected")?;
                range = Some((from.parse::<u64>()?, to.parse::<u64>()?.min(len - 1)));
            }
            line.clear();
        }
        let Some((from, to)) = range else { return Ok(()) };
        let bytes = to + 1 - from;
        write!(
            stream,
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{to}/{len}\r\nContent-Length: {bytes}\r\nETag: \"one\"\r\n\r\n"
        )?;
        file.seek(SeekFrom::Start(from))?;
        std::io::copy(&mut (&file).take(bytes), &mut stream)?;
    }
}
